"""The standard examination of an integrator, in one value."""

import json
from dataclasses import asdict, dataclass

import torch

from rni.analysis.accuracy import relative_error
from rni.analysis.manifold import current_ratio, null_ratio
from rni.analysis.spectrum import svd
from rni.network import Network
from rni.task import bursts, white_noise
from rni.weights import Dale

INPUTS = {"white noise": white_noise, "bursts": bursts}
TRAJECTORIES = {200: 128, 2000: 16}  # by duration: about as many samples for each


@dataclass(frozen=True)
class Analysis:
    """Relative errors by kind of input and duration, for each channel; leading singular values; the ratio r.

    r compares the currents outside and inside the best D-dimensional subspace, on bursts of 200 steps as in Table 1.
    """

    neurons: int
    activation: str
    decays: tuple[float, ...]
    scales: tuple[float, ...]
    errors: dict[str, dict[int, tuple[float, ...]]]
    singular_values: tuple[float, ...]
    dimension: int
    ratio: float
    null_ratio: float

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2)


@torch.no_grad()
def analyze(net: Network, *, seed: int = 0) -> Analysis:
    """Examine a network on test sequences of each kind, of 200 and of 2000 steps.

    Under Dale's law one more direction counts as inside, the mode that carries the signs (section 5).
    """
    generator = torch.Generator().manual_seed(seed)
    errors: dict[str, dict[int, tuple[float, ...]]] = {}
    for name, inputs in INPUTS.items():
        errors[name] = {}
        for duration, trajectories in TRAJECTORIES.items():
            x = inputs(trajectories, duration, net.channels, generator)
            errors[name][duration] = tuple(relative_error(net, x).tolist())
    spectrum = svd(net.recurrent)
    dimension = net.channels + isinstance(net.recurrent, Dale)
    test = bursts(TRAJECTORIES[200], 200, net.channels, generator)
    return Analysis(
        neurons=net.neurons,
        activation=repr(net.f),
        decays=net.task.decays,
        scales=net.task.scales,
        errors=errors,
        singular_values=tuple(spectrum.values[: net.channels + 5].tolist()),
        dimension=dimension,
        ratio=current_ratio(net, spectrum.left[:, :dimension], test),
        null_ratio=null_ratio(net.neurons, dimension),
    )
