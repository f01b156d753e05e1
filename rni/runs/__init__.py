"""Runs: their specification and how they are carried out."""
