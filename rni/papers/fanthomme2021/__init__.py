"""Fanthomme and Monasson, "Low-Dimensional Manifolds Support Multiplexed Integrations in RNNs", 2021."""

import rni
from rni.papers import Paper
from rni.papers.fanthomme2021.errata import ERRATA

PAPER = Paper(
    module=__name__,
    title="Low-dimensional manifolds support multiplexed integrations in recurrent neural networks",
    citation="Fanthomme and Monasson (Neural Computation, 2021)",
    link="https://arxiv.org/abs/2011.10435",
    summary="How can a network of many neurons integrate several signals at once, each with its own decay? The paper "
    "trains linear and non-linear networks and finds one answer: the currents that arrive at the neurons lie near a "
    "plane with as many dimensions as there are signals, their coordinates in this plane are the integrals, and each "
    "neuron codes a mixture of the integrals.",
    sections={
        "Definitions and model": {
            "fig1": "Network and task",
        },
        "Case of linear activation": {
            "fig2": "Manifolds of generalizing integrators",
            "linear": "Trained linear networks",
        },
        "Non-linear activation: case of a single channel": {
            "fig3": "Two populations",
            "fig4": "Currents of a ReLU network",
            "relu": "What generalises",
            "fig5": "Patterns of currents",
            "fig6": "Sigmoid networks, one channel",
            "sigmoid": "Accuracy of sigmoid networks",
        },
        "Non-linear activation: case of multiple channels": {
            "fig7": "Spectra",
            "fig8": "Coordinates in the current manifold",
            "table1": "Currents outside of the manifold",
            "fig9": "Sigmoid networks, two channels",
            "fig10": "Mixed selectivity",
            "fig11": "Structured supports",
            "fig12": "Dale's law",
            "robust": "What does not matter",
        },
        "Generalizing Integrators in the null initialization subspace": {
            "fig13": "Structure of the minima",
        },
        "Minimum convergence time": {
            "fig14": "Minimum convergence time",
        },
        "Algebraic convergence for specific scale value": {
            "fig15": "Exponential and algebraic convergence",
        },
        "Single-channel ReLU proxy loss gradients and Hessian": {
            "fig16": "Hessian of the ReLU proxy loss",
        },
        "Analysis of rank-1 ReLU generalizing integrators": {
            "fig17": "Rank-one ReLU integrators",
            "fig18": "Weights ordered by population",
        },
        "Example of transfer learning: context-dependent selectivity": {
            "fig19": "Transfer to a context-dependent decision",
        },
        "Beyond the paper": {
            "design": "Integrators without training",
            "capacity": "How many integrals n neurons can hold",
        },
    },
    errata=ERRATA,
    network=lambda: (rni.design(rni.Integration([0.995, 0.993])).network, "Two integrals, designed"),
)
