r"""Is a linear network a generalizing integrator (GI)? The conditions on W's spectrum, for any number of channels.

W is a GI when $D^\dagger W^q E = S \Gamma^q$ for every q >= 1 (section 3, "Conditions for generalizing integrators").
For a W of rank r the moments obey a recurrence of order r, so q = 1, ..., r + 1 decide, whether or not W can be
diagonalised; to within a tolerance, later ones matter as well. The eigenvalues then say which mode is at fault, on the
r dimensions that W uses.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.linalg import eig, get_lapack_funcs, matrix_balance, schur, solve_sylvester
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from rni.core.errors import InputError
from rni.theory._arrays import per_channel, precision, square, vector_pair

# Rounding splits an eigenvalue of a Jordan block of size 3 by about eps^(1/3).
SAME_EIGENVALUE = 1e-5
# A small error of an eigenvalue close to 1 shows in late moments only, so many of them are looked at.
HORIZON, LATEST = 1024, 2**20
TOLERANCE, FADED = 1e-6, 1e-9
GROWING = 1 + 1e-9  # spectral radius from which on a mode grows, in any time that matters
DOUBLE = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Mode:
    r"""One distinct eigenvalue $\lambda$ of W and its part in the moments, $\mu_q \ni g\, \lambda^q$.

    `weights`: g, summed over the eigenvectors of $\lambda$ (channels, channels), entry (c, c') for d_c and e_c'.
    `expected`: what a GI has there: s_c at (c, c) when $\lambda = \gamma_c$, else 0.
    `residual`: $|\lambda|$ times the largest difference, i.e. this mode's error in the first moment, or what the
    mode's nilpotent part adds if that is larger. $\lambda = 0$ plays no part but through a nilpotent part: its
    `weights` are what it adds to the first moment.
    `multiplicity`: 0 for a decay that should be an eigenvalue and is not.

    >>> e = torch.tensor([1.0, 0.0])
    >>> report = rni.theory.is_generalizing_integrator(torch.diag(torch.tensor([0.9, 0.5])), e, e, 0.9, 1.0)
    >>> [(round(mode.eigenvalue.real, 3), mode.multiplicity, mode.residual < 1e-6) for mode in report.modes]
    [(0.9, 1, True), (0.5, 1, True)]
    """

    eigenvalue: complex
    multiplicity: int
    weights: Tensor
    expected: Tensor
    residual: float

    def __str__(self) -> str:
        value = f"{self.eigenvalue.real:.6g}" + (f"{self.eigenvalue.imag:+.2g}i" if self.eigenvalue.imag else "")
        part = "missing" if self.multiplicity == 0 else f"multiplicity {self.multiplicity}"
        return f"  eigenvalue {value:>12}  {part:<15} residual {self.residual:.2g}"


@dataclass(frozen=True)
class IntegratorReport:
    r"""What `is_generalizing_integrator` found; true when W is a GI to within the tolerance.

    `moment_error`: the largest $|\mu_q - s\gamma^q|$ of an output, relative to its own scale, over
    $q = 1, \dots, \max(n + 1, 1024)$ and powers of 2 up to a million where something lasts; infinite if a mode
    that grows is driven and read. `rank` counts what is above the precision of the numbers.

    >>> e = torch.tensor([1.0, 0.0])
    >>> report = rni.theory.is_generalizing_integrator(torch.diag(torch.tensor([0.8, 0.5])), e, e, 0.9, 1.0)
    >>> bool(report), report.rank, round(report.worst.eigenvalue.real, 3)
    (False, 2, 0.9)
    """

    moment_error: float
    tolerance: float
    rank: int
    spectral_radius: float
    modes: tuple[Mode, ...]

    def __bool__(self) -> bool:
        return self.moment_error <= self.tolerance

    def __str__(self) -> str:
        verdict = "a generalizing integrator" if self else "not a generalizing integrator"
        if self.moment_error == np.inf:
            first = f"{verdict}: a mode that grows is driven and read, eigenvalue {self.worst.eigenvalue:.6g}"
        else:
            first = f"{verdict}: largest error of a moment {self.moment_error:.2g}, allowed {self.tolerance:.2g}"
        worst = sorted(self.modes, key=lambda mode: -mode.residual)[:8]
        return "\n".join([first, f"rank {self.rank}, spectral radius {self.spectral_radius:.6g}", *map(str, worst)])

    @property
    def worst(self) -> Mode:
        """The mode that is furthest from its condition; a growing one is, if it is driven and read at all."""
        if not self.modes:
            raise InputError("modes: none, W = 0; allowed: a W that has some")
        growing = [mode for mode in self.modes if abs(mode.eigenvalue) > GROWING and not mode.expected.any()]
        blamed = growing if growing and self.moment_error == np.inf else self.modes
        return max(blamed, key=lambda mode: mode.residual)


class LinearSystem(NamedTuple):
    r"""$\mu_q = C K^{q-1} B$."""

    transition: np.ndarray  # K (k, k)
    inputs: np.ndarray  # B (k, channels)
    outputs: np.ndarray  # C (channels, k)


def is_generalizing_integrator(
    recurrent: Any, encoders: Any, decoders: Any, decays: Any, scales: Any, tolerance: float | None = None
) -> IntegratorReport:
    r"""$\sum_i g_i \delta_{\lambda_i,\gamma} = s$, $\sum_i g_i \delta_{\lambda_i,\lambda} = 0$ for
    $\lambda \notin \{0, \gamma\}$.

    W (neurons, neurons), encoders and decoders (neurons, channels), decays and scales (channels,). With several
    channels g is a matrix, $g_{cc'}$, and the condition holds entry by entry. The verdict is on the moments, which need
    no diagonalisation; the modes say why. `tolerance`, relative to each channel's own scale: 1e-6, or half the digits
    of the numbers given where they have fewer (3.5e-4 for float32). A mode that grows must not be seen at all, beyond
    what the rounding of doubles can show.

    >>> e, d = torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0])
    >>> w = 0.9 * torch.outer(e, e)
    >>> bool(rni.theory.is_generalizing_integrator(w, e, d, decays=0.9, scales=1.0))
    True
    >>> bool(rni.theory.is_generalizing_integrator(w, e, d, decays=0.9, scales=2.0))
    False
    """
    eps = precision(recurrent, encoders, decoders)
    w = square(recurrent).detach()
    e, d = (vectors.detach() for vectors in vector_pair(encoders, decoders, len(w)))
    channels = e.shape[1]
    decays = per_channel(decays, channels, "decays").numpy()
    scales = per_channel(scales, channels, "scales").numpy()
    tolerance = max(TOLERANCE, eps**0.5) if tolerance is None else tolerance
    # what should stay silent is compared to what it could be
    units = np.where(scales == 0, (d.norm(dim=0) * e.norm(dim=0).max()).numpy(), np.abs(scales))
    units = np.where(units == 0, 1.0, units)

    whole = _balanced(w.numpy(), e.numpy(), d.numpy())
    reach = np.linalg.norm(whole.inputs) * np.linalg.norm(whole.outputs)
    system = active_system(whole, 1e-3 * tolerance * units.min() / reach if reach else 0.0, eps)
    eigenvalues, left, right = _eigen(system.transition)
    matching = max(tolerance, SAME_EIGENVALUE)
    modes = _modes(system, eigenvalues, left, right, decays, scales, matching)

    def lasting(value: complex) -> bool:
        return abs(value) <= GROWING or bool((np.abs(value - decays) <= matching).any())

    driven = LinearSystem(whole.transition, whole.transition @ whole.inputs, whole.outputs)
    if all(map(lasting, eigenvalues)):
        error = _largest_moment_error(driven, system, decays, scales, units)
    else:
        kept, seen = _without_growing(driven, lasting)
        error = np.inf if seen else _largest_moment_error(kept, kept, decays, scales, units)
    spectral_radius = float(np.abs(eigenvalues).max(initial=0.0))
    return IntegratorReport(error, tolerance, len(eigenvalues), spectral_radius, tuple(modes))


def g_coefficients(recurrent: Any, encoders: Any, decoders: Any) -> tuple[Tensor, Tensor]:
    r"""$g_i = (P^\dagger d)_i\, (P^{-1} e)_i$ for $W = P \Lambda P^{-1}$.

    Eigenvalues (rank,) and g (rank, channels, channels). Non-zero eigenvalues only, each with its own g;
    `is_generalizing_integrator` adds those of equal eigenvalues up, and also takes a W that cannot be diagonalised.

    >>> e, d = torch.tensor([1.0, 1.0]), torch.tensor([2.0, 3.0])
    >>> values, g = rni.theory.g_coefficients(torch.diag(torch.tensor([0.9, 0.5])), e, d)
    >>> sorted((round(v.real, 3), round(w.real, 3)) for v, w in zip(values.tolist(), g.flatten().tolist()))
    [(0.5, 3.0), (0.9, 2.0)]
    """
    w = square(recurrent).detach()
    e, d = (vectors.detach() for vectors in vector_pair(encoders, decoders, len(w)))
    system = active_system(_balanced(w.numpy(), e.numpy(), d.numpy()))
    eigenvalues, left, right = _eigen(system.transition)
    weights = [_simple_weights(system, left[:, i], right[:, i]) / eigenvalues[i] for i in range(len(eigenvalues))]
    shape = (len(eigenvalues), system.outputs.shape[0], system.inputs.shape[1])
    return torch.from_numpy(eigenvalues), torch.from_numpy(np.reshape(weights, shape))


def active_system(whole: LinearSystem, smallest: float = 0.0, eps: float = DOUBLE) -> LinearSystem:
    r"""$K = \Sigma V^\dagger U$, $B = \Sigma V^\dagger E$, $C = D^\dagger U$ from $W = U \Sigma V^\dagger$.

    `whole` is (W, E, D). Kept are the dimensions that W uses: singular values up to `smallest`, or within rounding of
    0, are left out.
    """
    left, values, right = np.linalg.svd(whole.transition)
    rank = int((values > max(len(left) * eps * values[0], smallest)).sum())
    left, scaled = left[:, :rank], values[:rank, None] * right[:rank]
    return LinearSystem(scaled @ left, scaled @ whole.inputs, whole.outputs @ left)


def _balanced(w: np.ndarray, e: np.ndarray, d: np.ndarray) -> LinearSystem:
    r"""$(T^{-1}WT, T^{-1}E, D^\dagger T)$ with T diagonal, of powers of 2: the same moments, rows and columns alike.

    Small weights that large ones make up for don't look negligible then.
    """
    with np.errstate(invalid="ignore"):  # scipy reads scalings as whole numbers too, of a permutation that is not asked
        balanced, (scaling, _) = matrix_balance(w, permute=False, separate=True)
    return LinearSystem(balanced, e / scaling[:, None], d.T * scaling)


def _without_growing(system: LinearSystem, lasting: Callable[[complex], bool]) -> tuple[LinearSystem, bool]:
    r"""The system without the modes that grow, and whether these are seen.

    In Schur form with the others first, $T_{11} Y - Y T_{22} = -T_{12}$ separates the two. For k growing dimensions the
    first k moments decide. What the rounding of $C (Q_1 Y + Q_2)$ and of $Q_2^\dagger B$ could show does not count.
    """
    t, q, size = schur(system.transition, output="complex", sort=lasting)  # pyright: ignore[reportAssignmentType]
    t11, t12, t22 = t[:size, :size], t[:size, size:], t[size:, size:]
    q1, q2 = q[:, :size], q[:, size:]
    y = solve_sylvester(t11, -t22, -t12) if size else t12
    c, b = system.outputs @ (q1 @ y + q2), q2.conj().T @ system.inputs
    c_size = np.abs(system.outputs) @ (np.abs(q1) @ np.abs(y) + np.abs(q2))
    b_size = np.abs(q2).T @ np.abs(system.inputs)
    seen = False
    for _ in range(len(t22)):
        seen = seen or bool((np.abs(c @ b) > 100 * len(t) * DOUBLE * (c_size @ b_size)).any())
        b, b_size = t22 @ b, np.abs(t22) @ b_size
    kept = q1.conj().T @ system.inputs - y @ (q2.conj().T @ system.inputs)
    return LinearSystem(t11, kept, system.outputs @ q1), seen


def _eigen(transition: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues (rank,) with left and right eigenvectors in columns (rank, rank)."""
    if transition.size == 0:
        return np.zeros(0, complex), np.zeros((0, 0)), np.zeros((0, 0))
    eigenvalues, left, right = map(np.asarray, eig(transition, left=True, right=True))
    return eigenvalues.astype(complex), left, right


def _largest_moment_error(
    system: LinearSystem, late: LinearSystem, decays: np.ndarray, scales: np.ndarray, units: np.ndarray
) -> float:
    r"""$\max_q |\mu_q - s\gamma^q|$ by output, each in its unit; `late`: the system of late moments."""
    state, target = system.inputs, np.diag(scales * decays)
    largest = 0.0

    def compare(moment: np.ndarray, wanted: np.ndarray) -> None:
        nonlocal largest
        largest = max(largest, float((np.abs(moment - wanted) / units[:, None]).max()))

    for _ in range(max(len(system.transition) + 1, HORIZON)):
        compare(system.outputs @ state, target)
        state, target = system.transition @ state, target * decays
    if max(np.abs(system.outputs @ state).max(), np.abs(target).max()) <= FADED * units.min():
        return largest
    power, q = np.linalg.matrix_power(late.transition, HORIZON), HORIZON
    while q < LATEST:
        compare(late.outputs @ (power @ late.inputs), np.diag(scales * decays ** (q + 1)))
        power, q = power @ power, 2 * q
    return largest


def _modes(
    system: LinearSystem,
    eigenvalues: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    decays: np.ndarray,
    scales: np.ndarray,
    matching: float,
) -> list[Mode]:
    """Equal eigenvalues are taken together, then each decay claims the nearest of them."""
    # s_c gamma_c^q is 0 for every q >= 1 if either is: no eigenvalue is asked for.
    active = [c for c in range(len(decays)) if abs(decays[c]) > SAME_EIGENVALUE and scales[c] != 0]
    clusters = _clusters(eigenvalues, decays[active], matching)
    centres = np.array([eigenvalues[cluster].mean() for cluster in clusters], dtype=complex)
    expected = np.zeros((len(clusters), len(decays), len(decays)))
    missing = []
    for c in active:
        distance = np.abs(centres - decays[c])
        if distance.min(initial=np.inf) <= matching:
            expected[distance.argmin(), c, c] = scales[c]
        else:
            missing.append(_missing_mode(c, decays[c], scales))

    none = np.zeros((0, 0))
    several = any(len(cluster) > 1 for cluster in clusters)
    triangular, basis = map(np.asarray, schur(system.transition, output="complex") if several else (none, none))
    modes = []
    for cluster, centre, wanted in zip(clusters, centres, expected, strict=True):
        if len(cluster) == 1:
            part, nilpotent = _simple_weights(system, left[:, cluster[0]], right[:, cluster[0]]), 0.0
        else:
            part, nilpotent = _cluster_weights(system, triangular, basis, eigenvalues[cluster])
        modes.append(_mode(centre, len(cluster), part, wanted, nilpotent))
    return modes + missing


def _clusters(eigenvalues: np.ndarray, decays: np.ndarray, matching: float) -> list[np.ndarray]:
    """Indices of equal eigenvalues: closer than rounding can tell, or matching the same decay."""
    if not len(eigenvalues):
        return []
    close = (np.abs(eigenvalues[:, None] - decays) <= matching).astype(float)
    same = (np.abs(eigenvalues[:, None] - eigenvalues) <= SAME_EIGENVALUE) | (close @ close.T > 0)
    count, labels = connected_components(same, directed=False)
    return [np.flatnonzero(labels == k) for k in range(count)]


def _mode(centre: complex, multiplicity: int, part: np.ndarray, expected: np.ndarray, nilpotent: float) -> Mode:
    """`part`: what the eigenvalue brings to the first moment, lambda g."""
    null = abs(centre) <= SAME_EIGENVALUE
    error = np.abs(part - centre * expected).max()
    weights = part if null else part / centre
    return Mode(
        complex(centre),
        multiplicity,
        torch.from_numpy(weights),
        torch.from_numpy(expected),
        float(max(error, nilpotent)),
    )


def _missing_mode(channel: int, decay: float, scales: np.ndarray) -> Mode:
    weights = torch.zeros(len(scales), len(scales), dtype=torch.complex128)
    expected = torch.zeros(len(scales), len(scales), dtype=torch.float64)
    expected[channel, channel] = scales[channel]
    return Mode(complex(decay), 0, weights, expected, float(abs(decay * scales[channel])))


def _simple_weights(system: LinearSystem, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    r"""$\lambda g$ of an eigenvalue alone in its cluster, $C\, r\, l^* B / (l^* r)$: no inverse of P is taken."""
    return np.outer(system.outputs @ right, left.conj() @ system.inputs) / (left.conj() @ right)


def _cluster_weights(
    system: LinearSystem, triangular: np.ndarray, basis: np.ndarray, cluster: np.ndarray
) -> tuple[np.ndarray, float]:
    r"""$\lambda g = C \Pi B$ with $\Pi$ the projector on the invariant subspace of equal eigenvalues.

    In Schur form with the cluster first, $\Pi = \begin{pmatrix} 1 & Y \\ 0 & 0 \end{pmatrix}$ with
    $T_{11} Y - Y T_{22} = T_{12}$, whether or not the block $T_{11}$ can be diagonalised. Also returns what the
    nilpotent part $(K - \lambda)\Pi$ adds to the second moment.
    """
    size = len(cluster)
    # The Schur form has its own order and rounding: the cluster's eigenvalues are the closest ones.
    closest = np.abs(np.diag(triangular)[:, None] - cluster).min(1).argsort()[:size]
    select = np.zeros(len(triangular), dtype=np.int32)
    select[closest] = 1
    reorder, solve = get_lapack_funcs(("trsen", "trsyl"), (triangular,))
    triangular, basis, *_ = reorder(select, triangular, basis, job="N")
    own = triangular[:size, :size]
    writer, reader = system.outputs @ basis[:, :size], basis[:, :size].conj().T @ system.inputs
    if size < len(triangular):
        coupling, factor, _ = solve(own, triangular[size:, size:], triangular[:size, size:], isgn=-1)
        reader = reader + coupling / factor @ (basis[:, size:].conj().T @ system.inputs)
    nilpotent = writer @ (own - cluster.mean() * np.eye(size)) @ reader
    return writer @ reader, float(np.abs(nilpotent).max())
