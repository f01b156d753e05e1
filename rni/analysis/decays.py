r"""Effective decays: the integrals of the inputs that signals of a network contain.

The functions take arrays: signals (trials, time, k), which are outputs, currents or activity of any network, and the
inputs (trials, time, channels) of the same trials.
"""

import math
from typing import NamedTuple

import scipy
import torch
from torch import Tensor
from torch.nn import functional

from rni.core.errors import InputError

SHORTEST, LONGEST = 0.2, 1e5  # range of the time constants -1 / log(decay) that are tried, in steps
CANDIDATES = 48  # time constants of the first, coarse search
SWEEPS = 20  # over the channels, in each of which one decay is optimised while the others are kept
LAGS = 50  # largest number of past inputs in the regressions of `memory`
MOST_LAGS = 200  # the same, if neurons forget slowly
RECENT = 2  # steps: inputs that are older than this count as remembered
DRIVER = "gelsd"  # torch's default (gelsy) reads uninitialised memory, and its result is wrong once in a while
NEGLIGIBLE = 1e-9  # relative size below which a column, or a share of the variance, is rounding


class Fit(NamedTuple):
    r"""Integrals that explain signals.

    Attributes
    ----------
    decays : Tensor (channels,)
        The effective decays $\gamma_c$.
    gains : Tensor (k, channels)
        The coefficients $g$ of the integrals in the signals.
    shares : Tensor (channels,)
        The part of the signals' variance that each integral explains in addition to the others.
    explained : float
        The part of the variance that integrals and present inputs explain together, adjusted for the number of
        coefficients.
    candidates, profile : Tensor (candidates,), (candidates, channels)
        For each candidate decay, the part of the variance that the integral of one channel alone explains in addition
        to the present inputs.
    initial : Tensor (trials, channels)
        The integrals before the first step. They are 0 for trials that start at rest.

    Examples
    --------
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
        r"""Return $z_{c,t} = \gamma_c (z_{c,t-1} + x_{c,t})$ from the initial integrals: (trials, time, channels)."""
        x = inputs.double()
        from_rest = torch.stack([_integral(x[..., c], decay) for c, decay in enumerate(self.decays.tolist())], 2)
        steps = torch.arange(1, x.shape[1] + 1)[:, None]
        return from_rest + self.initial[:, None] * self.decays**steps


def fit_integrals(signals: Tensor, inputs: Tensor, *, from_rest: bool = True) -> Fit:
    r"""Fit integrals of the inputs to signals.

    $v_t \simeq \sum_c [g_c\,z_{c,t} + u_c\,x_{c,t}] + v_0$ with $z_{c,t} = \gamma_c (z_{c,t-1} + x_{c,t})$.

    The effective decays are those whose integrals explain most of the signals' variance in addition to the present
    input. A response that is gone at the next step is therefore not counted as memory. For Gaussian inputs the decays
    are right through any activation, because $\langle f(z)\,z'\rangle \propto \langle z\,z'\rangle$ (Bussgang's
    theorem). If an integral explains less than 1e-9 of the variance, its channel gets gain 0 and the smallest decay of
    the search.

    Parameters
    ----------
    signals : Tensor (trials, time, k)
        Outputs, currents or activity.
    inputs : Tensor (trials, time, channels)
        The inputs of the same trials.
    from_rest : bool
        Whether the integrals are 0 before the first step. Otherwise an unknown initial integral is fitted for each
        trial and channel: what the decaying initial states $\gamma_c^{t+1}$ explain is projected out.

    Returns
    -------
    Fit

    Raises
    ------
    InputError
        If there are too few samples, or if the integral of a channel cannot be told apart from the inputs.

    Examples
    --------
    >>> x = rni.inputs.white_noise(20, 100, 2, torch.Generator().manual_seed(0)).double()
    >>> signals = rni.Integration([0.9, 0.5]).targets(x) @ torch.randn(2, 10).double()
    >>> rni.analysis.fit_integrals(signals, x).decays.round(decimals=3).tolist()
    [0.9, 0.5]
    """
    # Inputs of size 1 and signals of total variance 1, so that rounding does not depend on their units.
    size = inputs.double().square().mean((0, 1)).sqrt()
    size[size == 0] = 1
    v, x = signals.double(), inputs.double() / size
    trials, time, channels = x.shape
    coefficients = 1 + 2 * channels + (0 if from_rest else trials * channels)
    if trials * time <= coefficients:
        allowed = f"more than {coefficients} samples, the number of coefficients"
        raise InputError("signals", trials * time, allowed, problem=f"{trials * time} samples")
    present = torch.cat([torch.ones_like(x[..., :1]), x], 2)
    centred = v - v.mean((0, 1))
    total = float(centred.square().sum()) or 1.0  # nothing can be explained of constant signals
    normalised, no_integrals = centred / total**0.5, x[..., :0]

    # First search: the integral of one channel at a time, over a grid of time constants.
    times = torch.logspace(math.log10(SHORTEST), math.log10(LONGEST), CANDIDATES, dtype=torch.float64)
    candidates = (-1 / times).exp()
    middle = float(candidates[CANDIDATES // 2])
    regression = _Regression(normalised, present, no_integrals, () if from_rest else (middle,))
    for c in range(channels):
        if regression.added_by(_integral(x[..., c], middle)) is None:
            allowed = "inputs of several steps that are not 0 throughout"
            problem = f"the integral of channel {c + 1} cannot be told apart from the inputs"
            raise InputError("inputs", None, allowed, problem=problem)
    with_integral, without_integral = (candidates.new_zeros(CANDIDATES, channels) for _ in range(2))
    for k, decay in enumerate(candidates.tolist()):
        if not from_rest:
            regression = _Regression(normalised, present, no_integrals, (decay,))
        for c in range(channels):
            without_integral[k, c] = regression.explained
            with_integral[k, c] = regression.explained + (regression.added_by(_integral(x[..., c], decay)) or 0.0)
    decays: list[float] = candidates[with_integral.argmax(0)].tolist()
    z = torch.stack([_integral(x[..., c], decay) for c, decay in enumerate(decays)], 2)

    # Second search: all channels together. Each decay in turn is optimised with the integrals of the others.
    def missed(log_time: float, c: int) -> float:
        """Return minus the explained variance if channel c has the time constant exp(log_time)."""
        decay = math.exp(-math.exp(-log_time))
        starts = () if from_rest else (*decays[:c], decay, *decays[c + 1 :])
        regression = of_others or _Regression(normalised, present, z[..., others[c]], starts)
        return -(regression.explained + (regression.added_by(_integral(x[..., c], decay)) or 0.0))

    others = [[k for k in range(channels) if k != c] for c in range(channels)]
    for _ in range(SWEEPS if channels > 1 else 1):  # the best decay of a single channel depends on no other
        before = list(decays)
        for c in range(channels):
            of_others = _Regression(normalised, present, z[..., others[c]], ()) if from_rest else None
            start = -1 / math.log(decays[c]) if decays[c] < 1 else LONGEST
            bounds = math.log(max(start / 2, SHORTEST)), math.log(min(start * 2, LONGEST))
            options = {"bounds": bounds, "method": "bounded", "options": {"xatol": 1e-9}}
            log_time = float(scipy.optimize.minimize_scalar(missed, args=(c,), **options).x)
            best = math.exp(-math.exp(-log_time))
            exact = best > 0.999 and missed(math.inf, c) <= missed(log_time, c)  # a decay of 1 is as good
            decays[c] = 1.0 if exact else best
            z[..., c] = _integral(x[..., c], decays[c])
        if max(abs(new - old) for new, old in zip(decays, before, strict=True)) < 1e-7:
            break

    # What each integral explains in addition to the others, and the gains.
    starts = () if from_rest else tuple(decays)
    explained = _Regression(normalised, present, z, starts).explained
    shares = candidates.new_tensor(
        [explained - _Regression(normalised, present, z[..., kept], starts).explained for kept in others]
    )
    contributes = shares > NEGLIGIBLE
    basis = _Regression(normalised, present, no_integrals, starts).basis
    own = without_starts(z, starts).flatten(0, 1)
    own = own - basis @ (basis.T @ own)
    gains = torch.linalg.lstsq(own, centred.flatten(0, 1), driver=DRIVER).solution.T * contributes
    effective = torch.where(contributes, candidates.new_tensor(decays), candidates[0])

    # The initial integrals, from what present inputs and integrals leave: minimise |v_t - sum_c g_c decay^(t+1) z_c|^2.
    initial = x.new_zeros(trials, channels)
    if not from_rest:
        columns = torch.cat([present, z], 2)
        seen, wanted = (without_starts(values, starts).flatten(0, 1) for values in (columns, v))
        residual = v - columns @ torch.linalg.lstsq(seen, wanted, driver=DRIVER).solution
        powers = effective ** torch.arange(1, time + 1)[:, None]
        gram = (gains.T @ gains) * (powers.T @ powers)
        initial = ((residual @ gains) * powers).sum(1) @ torch.linalg.pinv(gram, hermitian=True)
        residual = residual - (initial[:, None] * powers) @ gains.T
        explained = 1 - float(residual.square().sum()) / total
    freedom = trials * time - (1 + 2 * channels) - initial.count_nonzero() / v.shape[2]
    adjusted = 1 - (1 - explained) * (trials * time - 1) / float(freedom)
    profile = with_integral - without_integral
    return Fit(effective, gains / size, shares, max(adjusted, 0.0), candidates, profile, initial * size)


class _Regression:
    r"""Regression of signals on the present inputs, some integrals and decaying initial states.

    Another column z explains $|v^\dagger \hat z|^2$ more, where $\hat z$ is the direction of z orthogonal to all
    columns of the regression (Frisch and Waugh).

    Parameters
    ----------
    signals : Tensor (trials, time, k)
        The signals, about their mean and of total variance 1.
    present, integrals : Tensor (trials, time, columns)
        A constant and the present inputs; the integrals.
    starts : tuple of float
        The decays of the initial states, if trials do not start at rest.
    """

    def __init__(self, signals: Tensor, present: Tensor, integrals: Tensor, starts: tuple[float, ...]):
        # Present inputs come first, so that an integral that adds only rounding to them is left out.
        p = _orthonormal(without_starts(present, starts), present)
        z = without_starts(integrals, starts).flatten(0, 1)
        self.basis = torch.cat([p, _orthonormal(z - p @ (p.T @ z), integrals)], 1)
        self.signals, self.starts = signals.flatten(0, 1), starts
        explained = (self.basis.T @ self.signals).square().sum()
        if starts:
            explained = explained + (_start_basis(starts, signals).T @ signals).square().sum()
        self.explained = float(explained)

    def added_by(self, column: Tensor) -> float | None:
        """Return the variance that a column (trials, time) explains in addition, or None if it adds only rounding."""
        own = without_starts(column[..., None], self.starts).flatten(0, 1)
        own = (own - self.basis @ (self.basis.T @ own))[:, 0]
        size = own.norm()
        if not size > NEGLIGIBLE * column.norm():
            return None
        return float((own / size @ self.signals).square().sum())


def _integral(x: Tensor, decay: float) -> Tensor:
    """Return the integral (trials, time) of one channel x (trials, time) from rest."""
    # scipy.signal takes seconds to import, and this attribute imports it when it is first used
    return torch.from_numpy(scipy.signal.lfilter([decay], [1, -decay], x.numpy(), axis=1))


def without_starts(values: Tensor, starts: tuple[float, ...]) -> Tensor:
    r"""Project values (trials, time, k) of each trial orthogonally to $\gamma^t$ for each decay in `starts`."""
    if not starts:
        return values
    q = _start_basis(starts, values)
    return values - q @ (q.T @ values)


def _start_basis(starts: tuple[float, ...], values: Tensor) -> Tensor:
    r"""Return an orthonormal basis (time, rank) of $\gamma^t$ for the decays in `starts`, as long as the values."""
    powers = (values.new_tensor(starts) ** torch.arange(1, values.shape[1] + 1)[:, None])[None]
    return _orthonormal(powers, powers)


def _orthonormal(columns: Tensor, whole: Tensor) -> Tensor:
    """Return an orthonormal basis (samples, rank) of columns (..., k), without those tiny relative to `whole`."""
    sizes = whole.flatten(0, -2).norm(dim=0).clamp(min=torch.finfo(whole.dtype).tiny)
    q, r = torch.linalg.qr(columns.flatten(0, -2) / sizes)
    u, values, _ = torch.linalg.svd(r, full_matrices=False)
    return q @ u[:, values > NEGLIGIBLE]


class Memory(NamedTuple):
    """What signals hold of past inputs, judged on samples that no coefficient was fitted on.

    Attributes
    ----------
    older : float
        Of what the signals hold of all inputs, the part that needs inputs of more than `recent` steps ago.
    integrals : float
        Of what the signals hold of all but the present input, the part that the integrals explain, at most 1.

    Examples
    --------
    >>> rni.analysis.Memory(older=0.8, integrals=0.95).integrals
    0.95
    """

    older: float
    integrals: float


def memory(signals: Tensor, inputs: Tensor, fit: Fit, recent: int = RECENT) -> Memory:
    r"""Measure what signals hold of past inputs.

    Signals $v_t$ are regressed on $x_t, \ldots, x_{t-k}$ for several k, and on $x_t$ and the integrals $z_t$. Inputs
    before $x_{t-k}$ enter through exponential averages of several time constants. If `recent` is longer than half of
    a trial, than 200 steps or than the samples allow, k ends there. An integral of time constant $\tau$ has
    $e^{-6/\tau}$ of its variance from inputs of more than two steps ago.

    Parameters
    ----------
    signals, inputs : Tensor (trials, time, k), (trials, time, channels)
        As for `fit_integrals`.
    fit : Fit
        The integrals that were fitted to these signals.
    recent : int
        Inputs of up to so many steps ago do not count as memory.

    Examples
    --------
    >>> x = rni.inputs.white_noise(20, 100, 1, torch.Generator().manual_seed(0)).double()
    >>> y = rni.Integration(0.9).targets(x)
    >>> held = rni.analysis.memory(y, x, rni.analysis.fit_integrals(y, x))
    >>> round(held.older, 1), round(held.integrals, 2)
    (0.5, 1.0)
    """
    # The states that trials started with are taken away, because they do not come from the inputs.
    started = fit.initial[:, None] * fit.decays ** torch.arange(1, inputs.shape[1] + 1)[:, None]
    v, size = signals.double() - started @ fit.gains.T, inputs.double().square().mean((0, 1)).sqrt()
    size[size == 0] = 1
    x, z = inputs.double() / size, (fit.integrals(inputs) - started) / size
    trials, time, channels = x.shape
    enough = min(MOST_LAGS, time // 2, trials * time // (8 * channels))
    longest = max(RECENT + 1, min(max(LAGS, recent + 1), enough))
    past = torch.cat([functional.pad(x, (0, 0, k, 0))[:, :time] for k in range(longest + 1)], 2)

    # A slow mode holds inputs from before the last lag, which single lags would miss.
    times = [longest * 2.0**k for k in range(-2, 4)]
    averages = [_integral(x[..., c], math.exp(-1 / tau))[..., None] for tau in times for c in range(channels)]

    # R^2 of four regressions, on the half of the samples that the coefficients were not fitted on.
    lags = [past[..., : (k + 1) * channels] for k in (0, min(recent, longest - 1))]
    lags.append(torch.cat([past, *averages], 2))
    fitted_signals, new_signals = (half.flatten(0, 1) for half in halves(v))
    variance = float((new_signals - fitted_signals.mean(0)).square().sum()) or 1.0
    explained = []
    for columns in (*lags, torch.cat([x, z], 2)):
        fitted, new = (half.flatten(0, 1) for half in halves(torch.cat([torch.ones_like(x[..., :1]), columns], 2)))
        predicted = new @ torch.linalg.lstsq(fitted, fitted_signals, driver=DRIVER).solution
        explained.append(1 - float((new_signals - predicted).square().sum()) / variance)
    of_present, of_recent, of_past, of_integrals = explained
    of_present, of_recent = max(of_present, 0.0), max(of_recent, 0.0)

    everything = max(of_past, of_recent, of_integrals)
    if not everything > 1 / (trials * time):
        return Memory(0.0, 0.0)
    remembered = everything - of_present
    share = max(of_integrals - of_present, 0.0) / remembered if remembered > 0 else 0.0
    return Memory(max(everything - of_recent, 0.0) / everything, share)


def halves(values: Tensor) -> tuple[Tensor, Tensor]:
    """Split (trials, time, k) into every other trial and the rest, or a single trial into its two halves."""
    if len(values) > 1:
        return values[::2], values[1::2]
    half = values.shape[1] // 2
    return values[:, :half], values[:, half:]


def require_memory(inputs: Tensor) -> None:
    """Raise an error if sequences (batch, time, channels) are too short for anything to count as remembered."""
    steps = inputs.shape[1]
    if steps <= RECENT:
        allowed = f"{RECENT + 1} steps or more, because shorter sequences have no decays"
        raise InputError("inputs", steps, allowed, problem=f"{steps} steps")
