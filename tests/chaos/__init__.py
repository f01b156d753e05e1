"""Faults made on purpose, and what is left of the work afterwards: `make chaos`.

Each module is an experiment, `run(seed, folder) -> [(what, cases, failures, remark)]`; a new one is found by itself.
"""
