"""Fanthomme and Monasson, "Low-Dimensional Manifolds Support Multiplexed Integrations in RNNs", 2021."""
