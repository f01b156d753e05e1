"""Input signals, (batch, time, channels): white and correlated noise, pulses, bursts."""

import torch
from torch import Generator, Tensor

from rni.core.errors import InputError, require_whole
from rni.core.rng import require_generator, shifted_points
from rni.theory.moments import full_covariance

__all__ = ["bursts", "correlated_noise", "pulses", "white_noise"]


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

    >>> rni.inputs.white_noise(batch=4, duration=10, channels=2).shape
    torch.Size([4, 10, 2])
    >>> even = rni.inputs.white_noise(256, 3, 1, torch.Generator().manual_seed(0), even=True)
    >>> bool(even.mean(0).abs().max() < 0.03)  # independent ones miss by 0.1
    True
    """
    _check_sizes(batch, duration, channels, generator)
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
    """Centred Gaussian inputs of a given covariance, (T, T) or (T, channels, T, channels): see `input_correlation`.

    >>> covariance = 0.9 ** (torch.arange(5)[:, None] - torch.arange(5)).abs().double()
    >>> rni.inputs.correlated_noise(batch=4, channels=2, covariance=covariance).shape
    torch.Size([4, 5, 2])
    """
    duration = len(covariance)
    full = full_covariance(duration, channels, covariance).reshape(duration * channels, -1)
    values, vectors = torch.linalg.eigh(full)
    root = (vectors * values.clamp(min=0).sqrt()).to(dtype)
    noise = white_noise(batch, duration, channels, generator, dtype=dtype, even=even)
    return (noise.flatten(1) @ root.T).view(batch, duration, channels)


def pulses(
    batch: int, duration: int, channels: int, probability: float = 0.05, generator: Generator | None = None
) -> Tensor:
    """Sparse pulses, N(0, 1) with the given probability and 0 otherwise (Fig 1B).

    >>> x = rni.inputs.pulses(100, 50, 1, probability=0.05, generator=torch.Generator().manual_seed(0))
    >>> round(x.count_nonzero().item() / x.numel(), 2)
    0.05
    """
    _check_sizes(batch, duration, channels, generator)
    _check_fraction("probability", probability)
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

    >>> x = rni.inputs.bursts(batch=4, duration=1000, channels=2, generator=torch.Generator().manual_seed(0))
    >>> x.shape, x.unique().tolist()
    (torch.Size([4, 1000, 2]), [-1.0, 0.0, 1.0])
    """
    _check_sizes(batch, duration, channels, generator)
    require_whole("length", length, 1)
    require_whole("gap", gap, 0)
    for name, value in (("starts", starts), ("density", density), ("background", background)):
        _check_fraction(name, value)
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


def _check_fraction(name: str, value: float) -> None:
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InputError(f"{name}: {value!r}; allowed: a number between 0 and 1")


def _check_sizes(batch: int, duration: int, channels: int, generator: Generator | None) -> None:
    require_generator(generator)
    for name, size in (("batch", batch), ("duration", duration), ("channels", channels)):
        require_whole(name, size, 1)
