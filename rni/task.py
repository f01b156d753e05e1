r"""The task: map D input signals to their decaying integrals (section 2). Signals are (batch, time, channels)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from rni.errors import InputError, require_whole
from rni.quasirandom import shifted_points
from rni.theory.moments import full_covariance


@dataclass(frozen=True)
class Integration:
    r"""$\bar y_{c,t} = \gamma_c\,(\bar y_{c,t-1} + s_c\,x_{c,t})$: decays in [0, 1], and scales, 1 by default."""

    decays: tuple[float, ...]
    scales: tuple[float, ...]

    def __init__(self, decays: Sequence[float] | float, scales: Sequence[float] | float | None = None):
        decays = _floats("decays", decays)
        scales = (1.0,) * len(decays) if scales is None else _floats("scales", scales)
        if not decays or not all(0 <= decay <= 1 for decay in decays):
            raise InputError(f"Integration.decays: {list(decays)}; allowed: one or more numbers between 0 and 1")
        if len(scales) != len(decays):
            raise InputError(f"Integration.scales: {len(scales)} scales; allowed: {len(decays)}, one for each decay")
        if not all(abs(scale) < float("inf") for scale in scales):
            raise InputError(f"Integration.scales: {list(scales)}; allowed: finite numbers")
        object.__setattr__(self, "decays", decays)
        object.__setattr__(self, "scales", scales)

    @property
    def channels(self) -> int:
        return len(self.decays)

    def targets(self, inputs: Tensor) -> Tensor:
        r"""$\bar y_{c,t} = s_c \sum_{k=0}^t \gamma_c^{k+1} x_{c,t-k}$ for inputs (..., time, channels)."""
        if inputs.shape[-1] != self.channels:
            raise InputError(f"inputs: {inputs.shape[-1]} channels; allowed: {self.channels}, as the task has")
        decays, scales = inputs.new_tensor(self.decays), inputs.new_tensor(self.scales)
        integral = torch.zeros_like(inputs[..., 0, :])
        integrals = []
        for x in inputs.unbind(-2):
            integral = decays * (integral + scales * x)
            integrals.append(integral)
        return torch.stack(integrals, dim=-2) if integrals else inputs.clone()

    def largest_integral(self, bound: float = 1.0) -> tuple[float, ...]:
        r"""$y_{max} = \gamma (y_{max} + s\,x_{max})$ for inputs bounded by `bound`; infinite where the decay is 1."""
        return tuple(
            g * abs(s) * bound / (1 - g) if g < 1 else float("inf")
            for g, s in zip(self.decays, self.scales, strict=True)
        )


def white_noise(
    batch: int,
    duration: int,
    channels: int,
    generator: Generator | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    even: bool = False,
) -> Tensor:
    """Independent N(0, 1) inputs, the paper's training and test signals.

    With `even`, each sequence is white noise still, but the batch covers their space evenly (quasi-random points, all
    shifted by one random vector): averages over the batch have less noise. Beyond 21201 numbers a sequence there are no
    such points, and the sequences are independent.
    """
    _check_sizes(batch, duration, channels)
    if not even:
        return torch.randn(batch, duration, channels, generator=generator, dtype=dtype)
    unit = shifted_points(batch, duration * channels, generator).clamp(min=2.0**-54)
    return torch.special.ndtri(unit).to(dtype).view(batch, duration, channels)


def correlated_noise(
    batch: int,
    channels: int,
    covariance: Tensor,
    generator: Generator | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    even: bool = False,
) -> Tensor:
    """Centred Gaussian inputs of a given covariance, (T, T) or (T, channels, T, channels): see `input_correlation`."""
    duration = len(covariance)
    full = full_covariance(duration, channels, covariance).reshape(duration * channels, -1)
    values, vectors = torch.linalg.eigh(full)
    root = (vectors * values.clamp(min=0).sqrt()).to(dtype)
    noise = white_noise(batch, duration, channels, generator, dtype=dtype, even=even)
    return (noise.flatten(1) @ root.T).view(batch, duration, channels)


def pulses(
    batch: int, duration: int, channels: int, probability: float = 0.05, generator: Generator | None = None
) -> Tensor:
    """Sparse pulses, N(0, 1) with the given probability and 0 otherwise (Fig 1B)."""
    _check_sizes(batch, duration, channels)
    if not 0 <= probability <= 1:
        raise InputError(f"probability: {probability!r}; allowed: a number between 0 and 1")
    noise = torch.randn(batch, duration, channels, generator=generator)
    return noise * (torch.rand(batch, duration, channels, generator=generator) < probability)


def bursts(
    batch: int,
    duration: int,
    channels: int,
    generator: Generator | None = None,
    *,
    starts: float = 20 / 1000,
    length: int = 25,
    gap: int = 10,
    density: float = 0.95,
    background: float = 0.05,
) -> Tensor:
    """Bursts of inputs of one sign between long quiet stretches: the structured test sequences of Figs 6 and 9.

    Burst starts are drawn uniformly, `starts` of them a step (20 in 1000), and kept when at least `length` + `gap`
    after the last one kept. Inside a burst each input is the burst's sign with probability `density`; outside, +1 and
    -1 each with probability `background`. Channels are independent.
    """
    _check_sizes(batch, duration, channels)
    inputs = torch.zeros(batch * channels, duration)
    quiet = torch.rand(batch * channels, duration, generator=generator)
    inputs[quiet < background] = -1.0
    inputs[quiet > 1 - background] = 1.0
    drawn = torch.randint(duration, (batch * channels, max(1, round(starts * duration))), generator=generator)
    signs = 2.0 * torch.randint(2, drawn.shape, generator=generator) - 1
    filled = (torch.rand(*drawn.shape, length, generator=generator) < density).float()
    for row, times in enumerate(drawn.sort(dim=1).values.tolist()):
        last = -length - gap
        for k, start in enumerate(times):
            if start >= last + length + gap:
                stop = min(start + length, duration)
                inputs[row, start:stop] = signs[row, k] * filled[row, k, : stop - start]
                last = start
    return inputs.view(batch, channels, duration).transpose(1, 2).contiguous()


def _floats(name: str, values: Any) -> tuple[float, ...]:
    """One number, or several, of Python, NumPy or torch."""
    several = isinstance(values, Iterable) and getattr(values, "ndim", 1) > 0
    numbers: Iterable[Any] = values if several else [values]
    try:
        if isinstance(values, str):
            raise TypeError
        return tuple(float(number) for number in numbers)
    except (TypeError, ValueError, RuntimeError):
        shape = getattr(values, "shape", None)
        found = repr(values) if shape is None else f"shape {tuple(shape)}"
        raise InputError(f"Integration.{name}: {found}; allowed: one or more numbers") from None


def _check_sizes(batch: int, duration: int, channels: int) -> None:
    for name, size in (("batch", batch), ("duration", duration), ("channels", channels)):
        require_whole(name, size, 1)
