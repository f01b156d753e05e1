"""`rni cite`."""


def cite() -> None:
    """How to cite the paper, and this software."""
    from rni import __version__

    print(
        "Fanthomme A., Monasson R. (2021). Low-Dimensional Manifolds Support Multiplexed Integrations in Recurrent\n"
        "Neural Networks. Neural Computation 33(4), 1063-1112. arXiv:2011.10435\n"
        f"rni {__version__}: recurrent neural integrators."
    )
