"""The effect of a network's process noise on its outputs, on their effective decays and on what it remembers."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from rni.analysis.verdict import Kind, percent
from rni.core.text_result import TextResult, join_numbers
from rni.networks.vanilla import VanillaRNN

TRIALS = 64  # smallest number of trials over which the effect of noise is averaged


@dataclass(frozen=True, kw_only=True, repr=False)
class Noisy(TextResult):
    """A network with its process noise.

    Attributes
    ----------
    noise : float
        The standard deviation of the noise on each state and step.
    errors : dict
        Relative errors by kind of test, duration and channel, on the same sequences as without noise.
    decays : tuple of float
        The effective decays of the noisy outputs; or of the currents, if the readout was fitted to noisy activity.
    steps : int
        A number of steps without inputs.
    deviations, parts : tuple of float (channels,)
        The root mean square by which noise moves the outputs in these steps, and the same relative to the spread of the
        outputs under inputs.

    Examples
    --------
    >>> net = rni.design(rni.Integration(0.95), neurons=40).network
    >>> found = rni.analyze(net, noise=0.01).noisy
    >>> round(found.decays[0], 2), found.steps, found.errors["bursts"][200][0] > 1e-3
    (0.95, 200, True)
    """

    noise: float
    errors: dict[str, dict[int, tuple[float, ...]]]
    decays: tuple[float, ...]
    steps: int
    deviations: tuple[float, ...]
    parts: tuple[float, ...]

    @property
    def error(self) -> float:
        """The largest relative error, or NaN if no channel has one."""
        return _largest(error for errors in self.errors.values() for each in errors.values() for error in each)

    def lines(self) -> Iterator[str]:
        yield f"with its noise of {self.noise:.4g}, which what is above is measured without:"
        for kind, errors in self.errors.items():
            for duration, by_channel in errors.items():
                yield f"  relative error, {kind}, {duration} steps: {'  '.join(map(percent, by_channel))}"
        yield f"  effective decays: {join_numbers(self.decays)}"
        parts = "  ".join(map(percent, self.parts))
        moved = f"{join_numbers(self.deviations)} ({parts} of their spread)"
        yield f"  moves its outputs in {self.steps} steps without inputs by: {moved}"

    def clause(self, kind: Kind) -> str:
        """Return the clause of a verdict's evidence about the noise."""
        part = percent(float(f"{_largest(self.parts):.2g}"))
        error = f", relative error {percent(self.error)} with it" if kind == "integrates" else ""
        return f"noise of {self.noise:.4g} moves its outputs by {part} of their spread in {self.steps} steps{error}"


@torch.no_grad()
def noisy(net: VanillaRNN, inputs: Tensor, errors: dict[str, dict[int, tuple[float, ...]]], decays: Tensor) -> Noisy:
    r"""Compare a network with and without its process noise, after inputs end.

    Noise moves an output by $\langle(\tilde y_t - y_t)^2\rangle^{1/2}$ in t steps without inputs.

    Parameters
    ----------
    net : VanillaRNN
        The network with its noise and its readout.
    inputs : Tensor (trials, t, channels)
        The inputs before.
    errors, decays
        Measurements of the noisy network, for the result.
    """
    quiet, steps = net.replace(noise=0.0), inputs.shape[1]
    ended = quiet.end(inputs)
    ended = ended.repeat(-(-TRIALS // len(ended)), 1)
    silence = inputs.new_zeros(len(ended), steps, net.channels)
    y, moved = (each.readout(each.end(silence, ended)).double() for each in (quiet, net))
    deviations, spread = (moved - y).square().mean(0).sqrt(), quiet.outputs(inputs).double().flatten(0, 1).std(0)
    return Noisy(
        noise=net.noise,
        errors=errors,
        decays=tuple(decays.tolist()),
        steps=steps,
        deviations=tuple(deviations.tolist()),
        parts=tuple(torch.where(spread > 0, deviations / spread, math.nan).tolist()),
    )


def _largest(values: Iterable[float]) -> float:
    """Return the largest value that is not NaN."""
    return max((value for value in values if not math.isnan(value)), default=math.nan)
