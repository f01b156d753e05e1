"""What a network's process noise does: to its outputs, to the decays that they have, to what it holds."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rni.analysis.verdict import Kind, percent
from rni.core.described import Described, numbers
from rni.networks.vanilla import VanillaRNN

TRIALS = 64  # at least, over which what noise adds is averaged


@dataclass(frozen=True, kw_only=True, repr=False)
class Noisy(Described):
    """The network as it is, with `noise`, beside all that is measured without.

    errors: relative, by kind of input, duration and channel, on the same sequences. decays: the effective ones, from
    the noisy outputs (or currents, where the readout is fitted, to noisy activity). deviations: by how much noise moves
    the outputs in `steps` without inputs, root mean square, (channels,); parts: of the outputs' spread under inputs.

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
        """The largest; not a number where no channel has one."""
        return _largest(error for errors in self.errors.values() for each in errors.values() for error in each)

    def lines(self) -> Iterator[str]:
        yield f"with its noise of {self.noise:.4g}, which what is above is measured without:"
        for kind, errors in self.errors.items():
            for duration, by_channel in errors.items():
                yield f"  relative error, {kind}, {duration} steps: {'  '.join(map(percent, by_channel))}"
        yield f"  effective decays: {numbers(self.decays)}"
        parts = "  ".join(map(percent, self.parts))
        moved = f"{numbers(self.deviations)} ({parts} of their spread)"
        yield f"  moves its outputs in {self.steps} steps without inputs by: {moved}"

    def clause(self, kind: Kind) -> str:
        """What a verdict says of it."""
        part = percent(float(f"{_largest(self.parts):.2g}"))
        error = f", relative error {percent(self.error)} with it" if kind == "integrates" else ""
        return f"noise of {self.noise:.4g} moves its outputs by {part} of their spread in {self.steps} steps{error}"


@torch.no_grad()
def noisy(net: VanillaRNN, inputs: Tensor, errors: dict[str, dict[int, tuple[float, ...]]], decays: Tensor) -> Noisy:
    r"""$\langle(\tilde y_t - y_t)^2\rangle^{1/2}$, with and without noise, t steps after inputs (batch, t, channels)"""
    quiet, steps = replace(net, noise=0.0), inputs.shape[1]
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
    return max((value for value in values if not math.isnan(value)), default=math.nan)
