"""Robustness of a network to disturbances: noisy weights, lost neurons and noisy states."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from rni.core import memory
from rni.core.errors import InputError
from rni.core.text_result import TextResult
from rni.networks.accuracy import error_by_duration
from rni.networks.network import Network
from rni.tasks.inputs import bursts
from rni.tasks.integration import Integration

LARGEST = 20_000  # largest number of neurons, because noise on W is a full matrix
LEVELS = (0.01, 0.03, 0.1)
DURATION = 400


@dataclass(frozen=True, repr=False)
class Robustness(TextResult):
    """Relative errors of a disturbed network: the largest over channels, and the mean over draws.

    Attributes
    ----------
    undisturbed : float
        The error of the network itself.
    weights : dict
        The errors with Gaussian noise on every weight, by its size relative to the root mean square of W.
    neurons : dict
        The errors without some neurons, by the part of the neurons that is silenced.
    state : dict
        The errors with Gaussian noise on every activity at every step, by its size relative to their root mean square.
    duration : int
        The number of steps.

    Examples
    --------
    >>> found = rni.analysis.Robustness(0.0, weights={0.1: 0.3}, neurons={0.1: 0.5}, state={0.1: 0.1})
    >>> print(found)
    relative error over 400 steps, undisturbed: 0.0e+00
      noise on W,        10%: 3.0e-01
      silenced neurons,  10%: 5.0e-01
      noise on states,   10%: 1.0e-01
    """

    undisturbed: float
    weights: dict[float, float]
    neurons: dict[float, float]
    state: dict[float, float]
    duration: int = DURATION

    def lines(self) -> Iterator[str]:
        kinds = {"noise on W": self.weights, "silenced neurons": self.neurons, "noise on states": self.state}
        yield f"relative error over {self.duration} steps, undisturbed: {self.undisturbed:.1e}"
        for name, errors in kinds.items():
            levels = "  ".join(f"{level:.0%}: {error:.1e}" for level, error in errors.items())
            yield f"  {name + ',':<18} {levels}"


@torch.no_grad()
def robustness(
    net: Network,
    levels: tuple[float, ...] = LEVELS,
    *,
    inputs: Callable[..., Tensor] = bursts,
    duration: int = DURATION,
    trajectories: int = 8,
    draws: int = 4,
    seed: int = 0,
) -> Robustness:
    """Measure the errors of a network under disturbances.

    The test inputs are the same for all networks with this number of channels and this seed.

    Parameters
    ----------
    net : Network
        The network.
    levels : tuple of float
        The sizes of the disturbances, as fractions.
    inputs : callable
        The function that draws test inputs.
    duration, trajectories : int
        The number of steps and of sequences.
    draws : int
        The number of random disturbances of each kind and level.
    seed : int
        The seed of inputs and disturbances.

    Examples
    --------
    >>> net = rni.design(rni.Integration(0.9), neurons=60).network
    >>> found = rni.analysis.robustness(net, levels=(0.01, 0.1), duration=100, trajectories=2, draws=2)
    >>> found.undisturbed < 1e-9 < found.weights[0.01] < found.weights[0.1]
    True
    """
    if net.neurons > LARGEST:
        raise InputError("neurons", net.neurons, f"up to {LARGEST}, because noise on W is a full matrix")
    needed = 4 * net.encoders.element_size() * net.neurons**2
    memory.require(needed, f"neurons: {net.neurons}", "a smaller network, because noise on W is a full matrix")
    if not all(0 <= level < 1 for level in levels):
        raise InputError("levels", levels, "fractions from 0 to below 1")
    x = inputs(trajectories, duration, net.channels, _stream(seed, 0)).to(net.encoders)

    def mean_error(disturbed: Callable[[Generator], Tensor]) -> float:
        return sum(_worst_error(net.task, disturbed(_stream(seed, k + 1)), x) for k in range(draws)) / draws

    return Robustness(
        undisturbed=_worst_error(net.task, net.outputs(x), x),
        weights={p: mean_error(lambda g, p=p: noisy_weights(net, p, g).outputs(x)) for p in levels},
        neurons={p: mean_error(lambda g, p=p: lesioned(net, p, g).outputs(x)) for p in levels},
        state={p: mean_error(lambda g, p=p: noisy_outputs(net, x, p, g)) for p in levels},
        duration=duration,
    )


@torch.no_grad()
def noisy_weights(net: Network, level: float, generator: Generator) -> Network:
    r"""Return the network with $W_{ij} + \epsilon\,\sqrt{\langle W^2\rangle}\,\xi_{ij}$."""
    w = net.recurrent.matrix()
    noise = torch.randn(w.shape, generator=generator, dtype=w.dtype).to(w)
    return net.changed(w + level * w.square().mean().sqrt() * noise)


def lesioned(net: Network, fraction: float, generator: Generator) -> Network:
    """Return the network with a fraction of its neurons, drawn at random, silenced."""
    return net.silenced(torch.randperm(net.neurons, generator=generator)[: round(fraction * net.neurons)])


@torch.no_grad()
def noisy_outputs(net: Network, inputs: Tensor, level: float, generator: Generator) -> Tensor:
    r"""Return outputs with $h_t + \epsilon\,\sqrt{\langle h_t^2\rangle}\,\xi_t$ instead of $h_t$, fed back."""
    h, outputs = None, []
    for x in inputs.split(1, dim=1):
        _, h = next(net.steps(x, h))
        noise = torch.randn(h.shape, generator=generator, dtype=h.dtype).to(h)
        h = h + level * h.square().mean(dim=1, keepdim=True).sqrt() * noise
        outputs.append(net.readout(h))
    return torch.stack(outputs, dim=1)


def _worst_error(task: Integration, outputs: Tensor, inputs: Tensor) -> float:
    return float(error_by_duration(outputs, task.targets(inputs.double()), inputs)[-1].max())


def _stream(seed: int, number: int) -> Generator:
    return torch.Generator().manual_seed(1000 * seed + number)
