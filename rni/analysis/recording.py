r"""How integrals stand in samples of a network: its outputs, its currents, or recorded activity.

Functions on arrays: signals (trials, time, k) and the inputs behind them (trials, time, channels), any network, any k.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from scipy.optimize import minimize_scalar
from scipy.signal import lfilter
from torch import Tensor

from rni.errors import InputError

SHORTEST, LONGEST = 0.2, 1e5  # time constants -1 / log(decay) that are looked at, in steps


class Fit(NamedTuple):
    r"""$\gamma_c$ (channels,); gains g (k, channels); what each integral adds to the explained variance, (channels,).

    explained: the part of the signals' variance that integrals and present inputs explain together. profile
    (candidates, channels): what each channel's integral adds alone, by decay, candidates (candidates,).
    """

    decays: Tensor
    gains: Tensor
    shares: Tensor
    explained: float
    candidates: Tensor
    profile: Tensor


def fit_integrals(signals: Tensor, inputs: Tensor) -> Fit:
    r"""$v_t \simeq \sum_c [g_c\,z_{c,t} + u_c\,x_{c,t}] + v_0$ with $z_{c,t} = \gamma_c (z_{c,t-1} + x_{c,t})$.

    The effective decays are those whose integrals, beside the present input, explain most of the signals' variance: a
    response that is gone at the next step is not counted as memory. For Gaussian inputs this holds through any
    activation, since $\langle f(z)\,z'\rangle \propto \langle z\,z'\rangle$ (Bussgang). A channel of which nothing is
    kept (it adds less than 1e-9 of the variance) has gain 0 and the smallest decay that is looked at.
    """
    v, x = signals.double().flatten(0, 1), inputs.double()
    channels = list(range(x.shape[2]))
    if len(v) <= 2 * len(channels) + 1:
        raise InputError(f"signals: {len(v)} samples; allowed: more than {2 * len(channels) + 1}")
    # the constant and the present input are projected out of both sides (Frisch and Waugh)
    present = torch.linalg.qr(torch.cat([torch.ones_like(v[:, :1]), x.flatten(0, 1)], 1)).Q
    rest = v - present @ (present.T @ v)
    total = float((v - v.mean(0)).square().sum()) or 1.0  # of signals that are constant nothing is explained

    def integral(decay: float, c: int) -> Tensor:
        """(samples, 1), beside the present: the same numbers as Integration.targets, from a filter."""
        z = torch.from_numpy(lfilter([decay], [1, -decay], x[..., c].numpy(), axis=1)).reshape(-1, 1)
        return z - present @ (present.T @ z)

    def added(z: Tensor) -> float:
        """The part of the variance that the columns of z explain, beside the present."""
        return float((torch.linalg.qr(z).Q.T @ rest).square().sum()) / total if z.shape[1] else 0.0

    candidates = (-1 / torch.logspace(math.log10(SHORTEST), math.log10(LONGEST), 48, dtype=torch.float64)).exp()
    profile = candidates.new_tensor([[added(integral(g, c)) for c in channels] for g in candidates.tolist()])
    decays: list[float] = candidates[profile.argmax(0)].tolist()
    z = torch.cat([integral(decays[c], c) for c in channels], 1)
    for _ in range(20):
        before = list(decays)
        for c in channels:
            others = z[:, [k for k in channels if k != c]]
            decays[c] = _best(lambda g, c=c, others=others: added(torch.cat([others, integral(g, c)], 1)), decays[c])
            z[:, [c]] = integral(decays[c], c)
        if max(abs(new - old) for new, old in zip(decays, before, strict=True)) < 1e-7:
            break
    shares = candidates.new_tensor([added(z) - added(z[:, [k for k in channels if k != c]]) for c in channels])
    kept = shares > 1e-9
    gains = torch.linalg.lstsq(z, rest, driver="gelsd").solution.T * kept
    explained = 1 - float(rest.square().sum()) / total + added(z)
    effective = torch.where(kept, candidates.new_tensor(decays), candidates[0])
    return Fit(effective, gains, shares, explained, candidates, profile)


def _best(value: Callable[[float], float], start: float) -> float:
    """The decay with the largest value, of time constants from half to twice that of `start`; 1 if that is as good."""

    def decay(log_time: float) -> float:
        return math.exp(-math.exp(-log_time))

    time = -1 / math.log(start) if start < 1 else LONGEST
    bounds = math.log(max(time / 2, SHORTEST)), math.log(min(time * 2, LONGEST))
    found: Any = minimize_scalar(lambda u: -value(decay(u)), bounds=bounds, method="bounded", options={"xatol": 1e-9})
    best = decay(float(found.x))
    return 1.0 if best > 0.999 and value(1.0) >= value(best) else best


class Principal(NamedTuple):
    """Directions (neurons, k) of the largest variance about the mean (neurons,), and the variances (k,), descending."""

    mean: Tensor
    directions: Tensor
    variances: Tensor

    @property
    def components(self) -> int:
        """How many directions hold 99 % of the variance."""
        held = self.variances.cumsum(0) / self.variances.sum()
        return int((held < 0.99).sum()) + 1

    @property
    def participation(self) -> float:
        r"""$(\sum_k \lambda_k)^2 / \sum_k \lambda_k^2$: as many directions, if they shared the variance evenly."""
        return float(self.variances.sum().square() / self.variances.square().sum())

    def coordinates(self, samples: Tensor, dimension: int) -> Tensor:
        """(..., dimension) along the first directions, from the mean, of samples (..., neurons)."""
        return (samples.double() - self.mean) @ self.directions[:, :dimension]

    def ratio(self, samples: Tensor, dimension: int) -> float:
        r"""$\langle |\nu^\perp|\rangle / \langle |\nu^\parallel|\rangle$ about the mean, for the first directions."""
        inside = self.coordinates(samples, dimension)
        outside = samples.double() - self.mean - inside @ self.directions[:, :dimension].T
        return float(outside.norm(dim=-1).mean() / inside.norm(dim=-1).mean())


def principal(samples: Tensor) -> Principal:
    """Principal components of (samples, neurons)."""
    samples = samples.double()
    mean = samples.mean(0)
    values, vectors = torch.linalg.eigh((samples - mean).T @ (samples - mean) / len(samples))
    return Principal(mean, vectors.flip(1), values.flip(0).clamp(min=0))


def outliers(values: Tensor, most: int = 20) -> int:
    r"""The k with the largest $\sigma_k / \sigma_{k+1}$ of all of W's values, k up to `most`; 0 where W = 0."""
    if len(values) < 2 or not values[0] > 0:
        return int((values > 0).sum())
    floor = float(values[0] * len(values) * torch.finfo(values.dtype).eps)
    leading = values[: most + 1].clamp(min=floor)
    return int((leading[:-1] / leading[1:]).argmax()) + 1


def error_by_duration(outputs: Tensor, targets: Tensor) -> Tensor:
    r"""$\sqrt{\sum_{t<T}\langle (y_t - \bar y_t)^2\rangle / \sum_{t<T} \langle \bar y_t^2\rangle}$, (time, channels).

    Row T - 1 is the relative error on sequences of T steps; infinite where the outputs are no longer finite.
    """
    error, size = ((v.double().square().sum(0).cumsum(0)) for v in (outputs.double() - targets, targets))
    return (error / size).sqrt().nan_to_num(nan=math.inf, posinf=math.inf)


def longest_duration(errors: Tensor, allowed: float) -> tuple[int, ...]:
    """The longest T with a relative error of at most `allowed` on sequences of T steps, by channel; 0 for none."""
    steps = torch.arange(1, len(errors) + 1)[:, None]
    return tuple((steps * (errors <= allowed)).amax(0).tolist())


def fit_readout(activity: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    r"""$\bar y \simeq D^\dagger h + a$ by least squares from (samples, neurons): D (neurons, channels), a (channels,).

    With a ridge of 1e-8 of the mean variance, for activity on a manifold of fewer dimensions than neurons.
    """
    h, y = activity.double(), targets.double()
    mean, middle = h.mean(0), y.mean(0)
    gram = (h - mean).T @ (h - mean)
    ridge = 1e-8 * gram.trace() / len(gram) * torch.eye(len(gram), dtype=gram.dtype)
    decoders = torch.linalg.solve(gram + ridge, (h - mean).T @ (y - middle))
    return decoders, middle - mean @ decoders
