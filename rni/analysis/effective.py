r"""How integrals stand in samples of a network: its outputs, its currents, or recorded activity.

Functions on arrays: signals (trials, time, k) and the inputs behind them (trials, time, channels), any network, any k.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor
from torch.nn import functional

from rni.core.errors import InputError

SHORTEST, LONGEST = 0.2, 1e5  # time constants -1 / log(decay) that are looked at, in steps
LAGS = 50  # past inputs that are looked at one by one
LEADING = 20  # principal components in which decays are looked for
RECENT = 2  # steps: what is gone after them was not remembered
APART = 1e-9  # relative size below which a signal is rounding


class Fit(NamedTuple):
    r"""$\gamma_c$ (channels,); gains g (k, channels); what each integral adds to the explained variance, (channels,).

    explained: the part of the signals' variance that integrals and present inputs explain together, adjusted for the
    number of coefficients. profile (candidates, channels): what each channel's integral adds alone, by decay,
    candidates (candidates,). initial (trials, channels): the integrals before the first step, 0 from rest.

    >>> x = rni.inputs.white_noise(20, 100, 1, torch.Generator().manual_seed(0)).double()
    >>> fit = rni.analysis.fit_integrals(rni.Integration(0.9).targets(x), x)
    >>> fit.gains.round(decimals=3).tolist(), fit.integrals(x).shape
    ([[1.0]], torch.Size([20, 100, 1]))
    """

    decays: Tensor
    gains: Tensor
    shares: Tensor
    explained: float
    candidates: Tensor
    profile: Tensor
    initial: Tensor

    def integrals(self, inputs: Tensor) -> Tensor:
        r"""$z_{c,t} = \gamma_c (z_{c,t-1} + x_{c,t})$ with $z_{c,-1}$ the initial ones, (trials, time, channels)."""
        z = torch.stack([_integral(inputs.double(), g, c) for c, g in enumerate(self.decays.tolist())], 2)
        return z + self.initial[:, None] * _powers(self.decays, inputs.shape[1])


def fit_integrals(signals: Tensor, inputs: Tensor, *, from_rest: bool = True) -> Fit:
    r"""$v_t \simeq \sum_c [g_c\,z_{c,t} + u_c\,x_{c,t}] + v_0$ with $z_{c,t} = \gamma_c (z_{c,t-1} + x_{c,t})$.

    The effective decays are those whose integrals, beside the present input, explain most of the signals' variance: a
    response that is gone at the next step is not counted as memory. For Gaussian inputs this holds through any
    activation, since $\langle f(z)\,z'\rangle \propto \langle z\,z'\rangle$ (Bussgang). A channel of which nothing is
    kept (it adds less than 1e-9 of the variance) has gain 0 and the smallest decay that is looked at.

    Trials that do not start at rest (`from_rest` False) have $z_{c,t} + \gamma_c^{t+1} z_{c,-1}$ in place of the
    integrals, with an unknown initial state for each trial: what $\gamma_c^{t+1}$ explains is projected out.

    >>> x = rni.inputs.white_noise(20, 100, 2, torch.Generator().manual_seed(0)).double()
    >>> signals = rni.Integration([0.9, 0.5]).targets(x) @ torch.randn(2, 10).double()
    >>> rni.analysis.fit_integrals(signals, x).decays.round(decimals=3).tolist()
    [0.9, 0.5]
    """
    size = _sizes(inputs)
    v, x = signals.double(), inputs.double() / size
    trials, time, channels = x.shape
    columns = 1 + 2 * channels + (0 if from_rest else trials * channels)
    if trials * time <= columns:
        raise InputError(f"signals: {trials * time} samples; allowed: more than {columns}")
    present = torch.cat([torch.ones_like(x[..., :1]), x], 2)
    centred = v - v.mean((0, 1))
    total = float(centred.square().sum()) or 1.0  # of signals that are constant nothing is explained
    seen = centred / total**0.5

    def beside(z: Tensor, decays: Iterable[float]) -> _Beside:
        """The constant, present inputs, integrals z (trials, time, k), and initial states where there are some."""
        return _beside(seen, present, z, () if from_rest else tuple(decays))

    candidates = (-1 / torch.logspace(math.log10(SHORTEST), math.log10(LONGEST), 48, dtype=torch.float64)).exp()
    middle, none = float(candidates[24]), x[..., :0]
    without = beside(none, [middle])
    for c in range(channels):
        if without.own(_integral(x, middle, c)) is None:
            raise InputError(
                f"inputs: the integral of channel {c + 1} can't be told from the inputs; allowed: several steps, and "
                "inputs that are not 0 throughout"
            )

    pairs = []
    for g in candidates.tolist():
        without = without if from_rest else beside(none, [g])
        pairs.append([(without.explained_with(_integral(x, g, c)), without.explained) for c in range(channels)])
    whole, little = candidates.new_tensor(pairs).unbind(2)
    profile = whole - little
    decays: list[float] = candidates[whole.argmax(0)].tolist()
    z = torch.stack([_integral(x, g, c) for c, g in enumerate(decays)], 2)

    def by_decay(c: int) -> Callable[[float], float]:
        """What is explained with another decay of channel c."""
        if from_rest:
            rest = beside(z[..., others[c]], ())
            return lambda g: rest.explained_with(_integral(x, g, c))

        def explained(g: float) -> float:
            starts = [*decays[:c], g, *decays[c + 1 :]]
            return beside(z[..., others[c]], starts).explained_with(_integral(x, g, c))

        return explained

    others = [[k for k in range(channels) if k != c] for c in range(channels)]
    for _ in range(20 if channels > 1 else 1):  # the best decay of one does not hang on that of others
        before = list(decays)
        for c in range(channels):
            decays[c] = _best(by_decay(c), decays[c])
            z[..., c] = _integral(x, decays[c], c)
        if max(abs(new - old) for new, old in zip(decays, before, strict=True)) < 1e-7:
            break
    found = beside(z, decays).explained
    shares = candidates.new_tensor([found - beside(z[..., kept], decays).explained for kept in others])
    kept = shares > 1e-9
    starts, without = () if from_rest else tuple(decays), beside(none, decays)
    gains = torch.linalg.lstsq(without.part(z), centred.flatten(0, 1), driver="gelsd").solution.T * kept
    effective = torch.where(kept, candidates.new_tensor(decays), candidates[0])
    initial = x.new_zeros(trials, channels)
    if not from_rest:
        columns_seen = torch.cat([present, z], 2)
        seen, wanted = (without_starts(values, starts).flatten(0, 1) for values in (columns_seen, v))
        left = v - columns_seen @ torch.linalg.lstsq(seen, wanted, driver="gelsd").solution
        initial = _initial(left, gains, effective)
        left = left - (initial[:, None] * _powers(effective, time)) @ gains.T
        found = 1 - float(left.square().sum()) / total
    freedom = trials * time - (1 + 2 * channels) - initial.count_nonzero() / v.shape[2]
    adjusted = 1 - (1 - found) * (trials * time - 1) / float(freedom)
    return Fit(effective, gains / size, shares, max(adjusted, 0.0), candidates, profile, initial * size)


class _Beside(NamedTuple):
    r"""Some columns (samples, k), orthonormal, and what they explain of signals (samples, signals) of size 1.

    starts: decays of the initial states, which explain their part before. What another column z explains is
    $|v^\dagger \hat z|^2$ with $\hat z$ its direction orthogonal to all of these (Frisch and Waugh).
    """

    basis: Tensor
    signals: Tensor
    starts: tuple[float, ...]
    explained: float

    def part(self, z: Tensor) -> Tensor:
        """(samples, k) of z (trials, time, k), orthogonal to the columns and to initial states."""
        z = without_starts(z, self.starts).flatten(0, 1)
        return z - self.basis @ (self.basis.T @ z)

    def own(self, z: Tensor) -> Tensor | None:
        """The direction (samples,) that z (trials, time) adds to the columns; None where it adds nothing."""
        own = self.part(z[..., None])[:, 0]
        size = own.norm()
        return own / size if size > APART * z.norm() else None

    def explained_with(self, z: Tensor) -> float:
        """What the columns explain together with z (trials, time)."""
        own = self.own(z)
        return self.explained if own is None else self.explained + float((own @ self.signals).square().sum())


def _beside(signals: Tensor, present: Tensor, z: Tensor, starts: tuple[float, ...]) -> _Beside:
    """Of signals (trials, time, k): present inputs, integrals z, and initial states of the decays `starts`, if any."""
    p = _orthonormal(without_starts(present, starts), present)
    columns, seen = without_starts(z, starts).flatten(0, 1), signals.flatten(0, 1)
    basis = torch.cat([p, _orthonormal(columns - p @ (p.T @ columns), z)], 1)
    explained = (basis.T @ seen).square().sum()
    if starts:
        explained = explained + (_started(starts, signals).T @ signals).square().sum()
    return _Beside(basis, seen, starts, float(explained))


def _initial(left: Tensor, gains: Tensor, decays: Tensor) -> Tensor:
    r"""$\arg\min_z \sum_t |v_t - \sum_c g_c\,\gamma_c^{t+1} z_c|^2$ of what is `left`: (trials, channels)."""
    powers = _powers(decays, left.shape[1])
    gram = (gains.T @ gains) * (powers.T @ powers)
    return ((left @ gains) * powers).sum(1) @ torch.linalg.pinv(gram, hermitian=True)


def _integral(x: Tensor, decay: float, c: int) -> Tensor:
    """(trials, time) of channel c, from rest: the same numbers as Integration.targets, from a filter."""
    from scipy.signal import lfilter  # with all of scipy.stats: seconds, for whoever only imports this

    return torch.from_numpy(lfilter([decay], [1, -decay], x[..., c].numpy(), axis=1))


def _sizes(inputs: Tensor) -> Tensor:
    """The root mean square of each channel, (channels,), so that no unit is lost beside the constant."""
    size = inputs.double().square().mean((0, 1)).sqrt()
    return torch.where(size > 0, size, 1.0)


def _powers(decays: Tensor, time: int) -> Tensor:
    r"""$\gamma_c^{t+1}$, (time, channels)."""
    return decays ** torch.arange(1, time + 1)[:, None]


def without_starts(values: Tensor, starts: tuple[float, ...]) -> Tensor:
    r"""(trials, time, k), in each trial orthogonal to $\gamma^t$ for each of `starts`."""
    if not starts:
        return values
    q = _started(starts, values)
    return values - q @ (q.T @ values)


def _started(starts: tuple[float, ...], values: Tensor) -> Tensor:
    r"""An orthonormal basis (time, rank) of $\gamma^t$ for each of `starts`, as long as values (trials, time, k)."""
    powers = _powers(values.new_tensor(starts), values.shape[1])[None]
    return _orthonormal(powers, powers)


def _orthonormal(columns: Tensor, whole: Tensor) -> Tensor:
    """An orthonormal basis (samples, rank) of columns (..., k), without what is tiny beside those of `whole`."""
    sizes = whole.flatten(0, -2).norm(dim=0).clamp(min=torch.finfo(whole.dtype).tiny)
    q, r = torch.linalg.qr(columns.flatten(0, -2) / sizes)
    u, values, _ = torch.linalg.svd(r, full_matrices=False)
    return q @ u[:, values > APART]


def _best(value: Callable[[float], float], start: float) -> float:
    """The decay with the largest value, of time constants from half to twice that of `start`; 1 if that is as good."""

    def decay(log_time: float) -> float:
        return math.exp(-math.exp(-log_time))

    time = -1 / math.log(start) if start < 1 else LONGEST
    bounds = math.log(max(time / 2, SHORTEST)), math.log(min(time * 2, LONGEST))
    found: Any = minimize_scalar(lambda u: -value(decay(u)), bounds=bounds, method="bounded", options={"xatol": 1e-9})
    best = decay(float(found.x))
    return 1.0 if best > 0.999 and value(1.0) >= value(best) else best


class Memory(NamedTuple):
    """What signals hold of past inputs, judged on samples that no coefficient was fitted on.

    older: of what they hold of all inputs, the part that needs inputs of more than `recent` steps ago, two by default.
    integrals: of what they hold of all but the present input, the part that is in the integrals, at most 1.

    >>> rni.analysis.Memory(older=0.8, integrals=0.95).integrals
    0.95
    """

    older: float
    integrals: float


def memory(signals: Tensor, inputs: Tensor, fit: Fit, recent: int = RECENT) -> Memory:
    r"""Regression of $v_t$ on $x_t, \ldots, x_{t-k}$ for several k, beside the one on $x_t$ and the integrals $z_t$.

    An integral of time constant $\tau$ has $e^{-6/\tau}$ of its variance from inputs of more than two steps ago.

    >>> x = rni.inputs.white_noise(20, 100, 1, torch.Generator().manual_seed(0)).double()
    >>> y = rni.Integration(0.9).targets(x)
    >>> held = rni.analysis.memory(y, x, rni.analysis.fit_integrals(y, x))
    >>> round(held.older, 1), round(held.integrals, 2)
    (0.5, 1.0)
    """
    # what trials started with came before any input
    started = fit.initial[:, None] * _powers(fit.decays, inputs.shape[1])
    v, size = signals.double() - started @ fit.gains.T, _sizes(inputs)
    x, z = inputs.double() / size, (fit.integrals(inputs) - started) / size
    trials, time, channels = x.shape
    most = max(recent + 1, min(LAGS, time // 2, trials * time // (8 * channels)))
    past = torch.cat([functional.pad(x, (0, 0, k, 0))[:, :time] for k in range(most + 1)], 2)

    def explained(columns: Tensor) -> float:
        """$R^2$ on the samples that the coefficients were not fitted on."""
        (a, b), (seen, new) = (halves(each) for each in (torch.cat([torch.ones_like(x[..., :1]), columns], 2), v))
        a, b, seen, new = (each.flatten(0, 1) for each in (a, b, seen, new))
        predicted = b @ torch.linalg.lstsq(a, seen, driver="gelsd").solution
        return 1 - float((new - predicted).square().sum()) / (float((new - seen.mean(0)).square().sum()) or 1.0)

    present, lately, longer = (max(explained(past[..., : (k + 1) * channels]), 0.0) for k in (0, recent, most))
    within = explained(torch.cat([x, z], 2))
    everything = max(longer, lately, within)
    if not everything > 1 / (trials * time):
        return Memory(0.0, 0.0)
    held = everything - present
    return Memory(max(everything - lately, 0.0) / everything, max(within - present, 0.0) / held if held > 0 else 0.0)


def halves(values: Tensor) -> tuple[Tensor, Tensor]:
    """Every other trial of (trials, time, k) and the rest; of one trial, its two halves."""
    if len(values) > 1:
        return values[::2], values[1::2]
    half = values.shape[1] // 2
    return values[:, :half], values[:, half:]


class Principal(NamedTuple):
    """Directions (neurons, k) of the largest variance about the mean (neurons,), and the variances (k,), descending.

    >>> samples = torch.randn(1000, 2, generator=torch.Generator().manual_seed(0)) @ torch.randn(2, 50)
    >>> found = rni.analysis.principal(samples)
    >>> found.components <= 2, found.coordinates(samples, 2).shape, found.ratio(samples, 2) < 1e-5
    (True, torch.Size([1000, 2]), True)
    """

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
    """Principal components of (samples, neurons).

    >>> found = rni.analysis.principal(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
    >>> found.variances.tolist(), found.components
    ([1.0, 0.0], 1)
    """
    samples = samples.double()
    mean = samples.mean(0)
    values, vectors = torch.linalg.eigh((samples - mean).T @ (samples - mean) / len(samples))
    return Principal(mean, vectors.flip(1), values.flip(0).clamp(min=0))


def outliers(values: Tensor, most: int = 20) -> int:
    r"""The k with the largest $\sigma_k / \sigma_{k+1}$ of all of W's values, k up to `most`; 0 where W = 0.

    >>> rni.analysis.outliers(torch.tensor([5.0, 4.0, 0.1, 0.09, 0.08]))
    2
    """
    if len(values) < 2 or not values[0] > 0:
        return int((values > 0).sum())
    floor = float(values[0] * len(values) * torch.finfo(values.dtype).eps)
    leading = values[: most + 1].clamp(min=floor)
    return int((leading[:-1] / leading[1:]).argmax()) + 1


def growth(signals: Tensor) -> float:
    """How many times larger signals (trials, time, k) are in the last tenth of the time than in the first."""
    tenth = -(-signals.shape[1] // 10)
    first, last = (float(part.double().square().mean().sqrt()) for part in (signals[:, :tenth], signals[:, -tenth:]))
    return last / first if first > 0 else 0.0


def fit_readout(activity: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    r"""$\bar y \simeq D^\dagger h + a$ by least squares from (samples, neurons): D (neurons, channels), a (channels,).

    With a ridge of 1e-8 of the mean variance, for activity on a manifold of fewer dimensions than neurons.

    >>> h = torch.randn(500, 10, generator=torch.Generator().manual_seed(0)).double()
    >>> decoders, offset = rni.analysis.fit_readout(h, h[:, :1] + 3)
    >>> round(offset.item(), 4), decoders[:2, 0].round(decimals=4).abs().tolist()
    (3.0, [1.0, 0.0])
    """
    h, y = activity.double(), targets.double()
    mean, middle = h.mean(0), y.mean(0)
    gram = (h - mean).T @ (h - mean)
    size = float(gram.trace()) / len(gram) or 1.0
    ridge = 1e-8 * size * torch.eye(len(gram), dtype=gram.dtype)
    decoders = torch.linalg.solve(gram + ridge, (h - mean).T @ (y - middle))
    return decoders, middle - mean @ decoders
