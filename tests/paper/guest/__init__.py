"""A paper outside of the package rni, with one figure, one claim and one run."""

from rni.papers import Paper

PAPER = Paper(
    module=__name__,
    title="Leaky integrators exist",
    citation="Nobody (Journal of Small Results, 2026)",
    link="https://example.org/paper",
    summary="One network learns to integrate with the decay $\\gamma = 0.9$.",
    sections={"Results": {"decay": "The output of a network"}},
)
