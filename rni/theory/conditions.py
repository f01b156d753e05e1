r"""The conditions under which a linear network is a generalizing integrator (GI), for any number of channels.

W is a GI if $D^\dagger W^q E = S \Gamma^q$ for every q >= 1 (section 3, "Conditions for generalizing integrators"). The
moments of a W of rank r obey a recurrence of order r. Therefore q = 1, ..., r + 1 decide, whether or not W can be
diagonalised. To within a tolerance, later moments matter as well. The eigenvalues of W on the r dimensions that it uses
then show which mode violates the conditions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.linalg import eig, get_lapack_funcs, matrix_balance, schur, solve_sylvester
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from rni.core.arrays import as_matrix, as_row, as_vector_pair
from rni.core.errors import InputError

SAME_EIGENVALUE = 1e-5  # rounding splits an eigenvalue of a Jordan block of size 3 by about eps^(1/3)
ALL_MOMENTS = 1024  # all moments up to this q are compared, at least
LATEST_MOMENT = 2**20  # a small error of an eigenvalue close to 1 shows in late moments only
TOLERANCE = 1e-6
NEGLIGIBLE = 1e-9  # moments below it, relative to the scale, need not be followed any longer
GROWING = 1 + 1e-9  # absolute eigenvalue above which a mode grows noticeably
DOUBLE_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Mode:
    r"""One distinct eigenvalue $\lambda$ of W and its part $g\, \lambda^q$ of the moments.

    Attributes
    ----------
    eigenvalue : complex
        $\lambda$.
    multiplicity : int
        Its multiplicity. It is 0 for a decay that is not an eigenvalue although it should be.
    weights : Tensor
        g, summed over the eigenvectors of $\lambda$, (channels, channels). The entry (c, c') belongs to d_c and e_c'.
        For $\lambda = 0$, which contributes only through a nilpotent part, it is the contribution to the first moment.
    expected : Tensor
        The g of a GI: s_c at (c, c) if $\lambda = \gamma_c$, and 0 elsewhere.
    residual : float
        The error of this mode in the first moment, $|\lambda|$ times the largest difference of the two, or the
        contribution of its nilpotent part to the second moment if that is larger.

    Examples
    --------
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
    r"""The result of `is_generalizing_integrator`. It is true if W is a GI to within the tolerance.

    Attributes
    ----------
    moment_error : float
        The largest $|\mu_q - s\gamma^q|$ of an output, relative to its own scale, over
        $q = 1, \dots, \max(n + 1, 1024)$ and, if the moments have not decayed by then, over powers of 2 up to a
        million. It is infinite if a growing mode is driven by the input and read by the output.
    tolerance : float
        The largest allowed `moment_error`.
    rank : int
        The number of singular values of W that are above the rounding of the given numbers.
    spectral_radius : float
        The largest absolute eigenvalue.
    modes : tuple of Mode
        The distinct eigenvalues.

    Examples
    --------
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
        """The mode with the largest residual, among the growing modes if one of them is driven and read."""
        if not self.modes:
            raise InputError("recurrent", 0, "a W that has modes", problem="W = 0")
        growing = [mode for mode in self.modes if abs(mode.eigenvalue) > GROWING and not mode.expected.any()]
        candidates = growing if growing and self.moment_error == np.inf else self.modes
        return max(candidates, key=lambda mode: mode.residual)


class LinearSystem(NamedTuple):
    r"""A linear system with the moments $\mu_q = C K^{q-1} B$."""

    transition: np.ndarray  # K (k, k)
    inputs: np.ndarray  # B (k, channels)
    outputs: np.ndarray  # C (channels, k)


def is_generalizing_integrator(
    recurrent: Any, encoders: Any, decoders: Any, decays: Any, scales: Any, tolerance: float | None = None
) -> IntegratorReport:
    r"""Check that $\sum_i g_i \delta_{\lambda_i,\gamma} = s$, and $\sum_i g_i \delta_{\lambda_i,\lambda} = 0$ for
    $\lambda \notin \{0, \gamma\}$.

    With several channels g is a matrix, $g_{cc'}$, and the condition holds for each entry. The verdict is based on the
    moments, which need no diagonalisation. The modes give the reason. A growing mode must not contribute to the outputs
    at all, up to the rounding of float64.

    Parameters
    ----------
    recurrent : array
        W, (neurons, neurons).
    encoders, decoders : array
        (neurons, channels).
    decays, scales : array or float
        (channels,), or one number for all channels.
    tolerance : float, optional
        The largest allowed error of a moment, relative to the scale of each channel. The default is 1e-6, or half of
        the digits of the given numbers if these are less precise (3.5e-4 for float32).

    Examples
    --------
    >>> e, d = torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0])
    >>> w = 0.9 * torch.outer(e, e)
    >>> bool(rni.theory.is_generalizing_integrator(w, e, d, decays=0.9, scales=1.0))
    True
    >>> bool(rni.theory.is_generalizing_integrator(w, e, d, decays=0.9, scales=2.0))
    False
    """
    eps = coarsest_eps(recurrent, encoders, decoders)
    w = as_matrix("recurrent", recurrent).detach()
    e, d = (vectors.detach() for vectors in as_vector_pair(encoders, decoders, len(w)))
    channels = e.shape[1]
    decays = as_row("decays", decays, channels).numpy()
    scales = as_row("scales", scales, channels).numpy()
    tolerance = max(TOLERANCE, eps**0.5) if tolerance is None else tolerance
    # An output of scale 0 has no size of its own, so its error is relative to the largest size it could have.
    units = np.where(scales == 0, (d.norm(dim=0) * e.norm(dim=0).max()).numpy(), np.abs(scales))
    units = np.where(units == 0, 1.0, units)

    # modes of W on the dimensions that matter
    whole = _balanced(w.numpy(), e.numpy(), d.numpy())
    gain = np.linalg.norm(whole.inputs) * np.linalg.norm(whole.outputs)
    system = active_system(whole, 1e-3 * tolerance * units.min() / gain if gain else 0.0, eps)
    eigenvalues, left, right = _eigen(system.transition)
    matching = max(tolerance, SAME_EIGENVALUE)
    modes = _modes(system, eigenvalues, left, right, decays, scales, matching)

    # errors of the moments, where growing modes count only if they are seen
    def lasting(value: complex) -> bool:
        return abs(value) <= GROWING or bool((np.abs(value - decays) <= matching).any())

    driven = LinearSystem(whole.transition, whole.transition @ whole.inputs, whole.outputs)
    if all(map(lasting, eigenvalues)):
        error = _largest_moment_error(driven, system, decays, scales, units)
    else:
        others, seen = _without_growing(driven, lasting)
        error = np.inf if seen else _largest_moment_error(others, others, decays, scales, units)
    spectral_radius = float(np.abs(eigenvalues).max(initial=0.0))
    return IntegratorReport(error, tolerance, len(eigenvalues), spectral_radius, tuple(modes))


def g_coefficients(recurrent: Any, encoders: Any, decoders: Any) -> tuple[Tensor, Tensor]:
    r"""Compute $g_i = (P^\dagger d)_i\, (P^{-1} e)_i$ for $W = P \Lambda P^{-1}$, for the non-zero eigenvalues.

    `is_generalizing_integrator` sums g over equal eigenvalues, and also accepts a W that cannot be diagonalised.

    Parameters
    ----------
    recurrent : array
        W, (neurons, neurons).
    encoders, decoders : array
        (neurons, channels).

    Returns
    -------
    eigenvalues : Tensor
        (rank,).
    weights : Tensor
        g, (rank, channels, channels).

    Examples
    --------
    >>> e, d = torch.tensor([1.0, 1.0]), torch.tensor([2.0, 3.0])
    >>> values, g = rni.theory.g_coefficients(torch.diag(torch.tensor([0.9, 0.5])), e, d)
    >>> sorted((round(v.real, 3), round(w.real, 3)) for v, w in zip(values.tolist(), g.flatten().tolist()))
    [(0.5, 3.0), (0.9, 2.0)]
    """
    w = as_matrix("recurrent", recurrent).detach()
    e, d = (vectors.detach() for vectors in as_vector_pair(encoders, decoders, len(w)))
    system = active_system(_balanced(w.numpy(), e.numpy(), d.numpy()))
    eigenvalues, left, right = _eigen(system.transition)
    weights = [_simple_weights(system, left[:, i], right[:, i]) / eigenvalues[i] for i in range(len(eigenvalues))]
    shape = (len(eigenvalues), system.outputs.shape[0], system.inputs.shape[1])
    return torch.from_numpy(eigenvalues), torch.from_numpy(np.reshape(weights, shape))


def active_system(whole: LinearSystem, smallest: float = 0.0, eps: float = DOUBLE_EPS) -> LinearSystem:
    r"""Compute $K = \Sigma V^\dagger U$, $B = \Sigma V^\dagger E$, $C = D^\dagger U$ from $W = U \Sigma V^\dagger$.

    `whole` is the system (W, E, D). Singular values up to `smallest`, or within rounding of 0, are left out.
    """
    left, values, right = np.linalg.svd(whole.transition)
    rank = int((values > max(len(left) * eps * values[0], smallest)).sum())
    left, scaled = left[:, :rank], values[:rank, None] * right[:rank]
    return LinearSystem(scaled @ left, scaled @ whole.inputs, whole.outputs @ left)


def _balanced(w: np.ndarray, e: np.ndarray, d: np.ndarray) -> LinearSystem:
    r"""Compute $(T^{-1}WT, T^{-1}E, D^\dagger T)$ with a diagonal T of powers of 2 that makes rows and columns alike.

    The moments are the same. Without T, small weights that large weights compensate could look negligible.
    """
    with np.errstate(invalid="ignore"):  # SciPy also converts the scalings to the integers of an unused permutation
        balanced, (scaling, _) = matrix_balance(w, permute=False, separate=True)
    return LinearSystem(balanced, e / scaling[:, None], d.T * scaling)


def _without_growing(system: LinearSystem, lasting: Callable[[complex], bool]) -> tuple[LinearSystem, bool]:
    r"""Return the system without its growing modes, and whether the moments contain these modes.

    In Schur form with the other modes first, $T_{11} Y - Y T_{22} = -T_{12}$ separates the two groups. For k growing
    dimensions the first k moments decide. Values within the rounding of $C (Q_1 Y + Q_2)$ and $Q_2^\dagger B$ do not
    count.
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
        seen = seen or bool((np.abs(c @ b) > 100 * len(t) * DOUBLE_EPS * (c_size @ b_size)).any())
        b, b_size = t22 @ b, np.abs(t22) @ b_size
    inputs = q1.conj().T @ system.inputs - y @ (q2.conj().T @ system.inputs)
    return LinearSystem(t11, inputs, system.outputs @ q1), seen


def _eigen(transition: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute the eigenvalues (rank,), and the left and right eigenvectors as columns (rank, rank)."""
    if transition.size == 0:
        return np.zeros(0, complex), np.zeros((0, 0)), np.zeros((0, 0))
    eigenvalues, left, right = map(np.asarray, eig(transition, left=True, right=True))
    return eigenvalues.astype(complex), left, right


def _largest_moment_error(
    system: LinearSystem, late: LinearSystem, decays: np.ndarray, scales: np.ndarray, units: np.ndarray
) -> float:
    r"""Compute $\max_q |\mu_q - s\gamma^q|$ of the outputs in their units. `late` is the system for late moments."""
    state, target = system.inputs, np.diag(scales * decays)
    largest = 0.0

    def compare(moment: np.ndarray, wanted: np.ndarray) -> None:
        nonlocal largest
        largest = max(largest, float((np.abs(moment - wanted) / units[:, None]).max()))

    for _ in range(max(len(system.transition) + 1, ALL_MOMENTS)):
        compare(system.outputs @ state, target)
        state, target = system.transition @ state, target * decays
    if max(np.abs(system.outputs @ state).max(), np.abs(target).max()) <= NEGLIGIBLE * units.min():
        return largest
    power, q = np.linalg.matrix_power(late.transition, ALL_MOMENTS), ALL_MOMENTS
    while q < LATEST_MOMENT:
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
    """Group equal eigenvalues, assign to each decay the nearest group, and compute the weights of each group."""
    # s_c gamma_c^q is 0 for every q >= 1 if either is 0. Such a channel needs no eigenvalue.
    active = [c for c in range(len(decays)) if abs(decays[c]) > SAME_EIGENVALUE and scales[c] != 0]

    # groups of equal eigenvalues: closer than rounding can tell, or matching the same decay
    close = (np.abs(eigenvalues[:, None] - decays[active]) <= matching).astype(float)
    same = (np.abs(eigenvalues[:, None] - eigenvalues) <= SAME_EIGENVALUE) | (close @ close.T > 0)
    count, labels = connected_components(same, directed=False) if len(eigenvalues) else (0, np.zeros(0))
    clusters = [np.flatnonzero(labels == k) for k in range(count)]
    centres = np.array([eigenvalues[cluster].mean() for cluster in clusters], dtype=complex)

    # the nearest group of each decay
    expected = np.zeros((count, len(decays), len(decays)))
    missing = []
    for c in active:
        distance = np.abs(centres - decays[c])
        if distance.min(initial=np.inf) <= matching:
            expected[distance.argmin(), c, c] = scales[c]
        else:
            none = torch.zeros(len(decays), len(decays), dtype=torch.complex128)
            wanted = torch.zeros(len(decays), len(decays), dtype=torch.float64)
            wanted[c, c] = scales[c]
            missing.append(Mode(complex(decays[c]), 0, none, wanted, float(abs(decays[c] * scales[c]))))

    # the contribution of each group to the first moment, lambda g, and that of its nilpotent part to the second one
    triangular = basis = np.zeros((0, 0))
    if any(len(cluster) > 1 for cluster in clusters):
        triangular, basis = map(np.asarray, schur(system.transition, output="complex"))
    modes = []
    for cluster, centre, wanted in zip(clusters, centres, expected, strict=True):
        if len(cluster) == 1:
            part, nilpotent = _simple_weights(system, left[:, cluster[0]], right[:, cluster[0]]), 0.0
        else:
            part, nilpotent = _cluster_weights(system, triangular, basis, eigenvalues[cluster])
        residual = float(max(np.abs(part - centre * wanted).max(), nilpotent))
        weights = torch.from_numpy(part if abs(centre) <= SAME_EIGENVALUE else part / centre)
        modes.append(Mode(complex(centre), len(cluster), weights, torch.from_numpy(wanted), residual))
    return modes + missing


def _simple_weights(system: LinearSystem, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    r"""Compute $\lambda g = C\, r\, l^* B / (l^* r)$ of an eigenvalue that is alone in its group, without $P^{-1}$."""
    return np.outer(system.outputs @ right, left.conj() @ system.inputs) / (left.conj() @ right)


def _cluster_weights(
    system: LinearSystem, triangular: np.ndarray, basis: np.ndarray, cluster: np.ndarray
) -> tuple[np.ndarray, float]:
    r"""Compute $\lambda g = C \Pi B$, where $\Pi$ projects on the invariant subspace of a group of equal eigenvalues.

    In Schur form with the group first, $\Pi = \begin{pmatrix} 1 & Y \\ 0 & 0 \end{pmatrix}$ with
    $T_{11} Y - Y T_{22} = T_{12}$, whether or not the block $T_{11}$ can be diagonalised. The second result is the
    contribution of the nilpotent part $(K - \lambda)\Pi$ to the second moment.
    """
    size = len(cluster)
    # The Schur form has its own order and rounding. The eigenvalues of the group are the closest ones.
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


def coarsest_eps(*arrays: Any) -> float:
    """Return the machine epsilon of the least precise array. Arrays of integers and lists count as float64."""
    units = [DOUBLE_EPS]
    for array in arrays:
        if isinstance(array, Tensor) and array.is_floating_point():
            units.append(torch.finfo(array.dtype).eps)
        elif isinstance(array, np.ndarray) and np.issubdtype(array.dtype, np.floating):
            units.append(float(np.finfo(array.dtype).eps))
    return max(units)
