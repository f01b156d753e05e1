r"""Is a linear network a generalizing integrator (GI)? The conditions on W's spectrum, for any number of channels.

W is a GI when $D^\dagger W^q E = S \Gamma^q$ for every q >= 1 (section 3, "Conditions for generalizing integrators").
For a W of rank r the moments obey a recurrence of order r, so q = 1, ..., r + 1 decide, whether or not W can be
diagonalised; the eigenvalues then say which mode is at fault. Everything is computed on the r dimensions that W uses.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.linalg import eig, get_lapack_funcs, schur
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from rni.theory._arrays import columns, matrix, per_channel

# Rounding splits an eigenvalue of a Jordan block of size 3 by about eps^(1/3).
SAME_EIGENVALUE = 1e-5
# A small error of an eigenvalue close to 1 shows in late moments only, so many of them are looked at.
HORIZON = 1000


@dataclass(frozen=True)
class Mode:
    r"""One distinct eigenvalue $\lambda$ of W and its part in the moments, $\mu_q \ni g\, \lambda^q$.

    `weights`: g, summed over the eigenvectors of $\lambda$ (channels, channels), entry (c, c') for d_c and e_c'.
    `expected`: what a GI has there: s_c at (c, c) when $\lambda = \gamma_c$, else 0.
    `residual`: $|\lambda|$ times the largest difference, i.e. this mode's error in the first moment, or what the
    mode's nilpotent part adds if that is larger. $\lambda = 0$ plays no part but through a nilpotent part: its
    `weights` are what it adds to the first moment.
    `multiplicity`: 0 for a decay that should be an eigenvalue and is not.
    """

    eigenvalue: complex
    multiplicity: int
    weights: Tensor
    expected: Tensor
    residual: float


@dataclass(frozen=True)
class IntegratorReport:
    r"""What `is_generalizing_integrator` found; true when W is a GI to within the tolerance.

    `moment_error`: the largest $|\mu_q - s\gamma^q| / \rho^q$ over channels and $q = 1, \dots, \max(r + 1, 1000)$,
    relative to the largest scale, with $\rho$ the spectral radius or 1 if that is larger.
    """

    moment_error: float
    tolerance: float
    rank: int
    spectral_radius: float
    modes: tuple[Mode, ...]

    def __bool__(self) -> bool:
        return self.moment_error <= self.tolerance

    @property
    def worst(self) -> Mode:
        """The mode that is furthest from its condition."""
        return max(self.modes, key=lambda mode: mode.residual)


class ActiveSystem(NamedTuple):
    r"""$W^q = U K^{q-1} \Sigma V^\dagger$ on the dimensions that W uses: $\mu_q = C K^{q-1} B$."""

    transition: np.ndarray  # K (rank, rank)
    inputs: np.ndarray  # B (rank, channels)
    outputs: np.ndarray  # C (channels, rank)


def is_generalizing_integrator(
    recurrent: Any, encoders: Any, decoders: Any, decays: Any, scales: Any, tolerance: float = 1e-6
) -> IntegratorReport:
    r"""$\sum_i g_i \delta_{\lambda_i,\gamma} = s$, $\sum_i g_i \delta_{\lambda_i,\lambda} = 0$ for
    $\lambda \notin \{0, \gamma\}$.

    W (neurons, neurons), encoders and decoders (neurons, channels), decays and scales (channels,). With several
    channels g is a matrix, $g_{cc'}$, and the condition holds entry by entry. The verdict is on the moments, which
    need no diagonalisation; the modes say why.
    """
    encoders, decoders = columns(encoders), columns(decoders)
    channels = encoders.shape[1]
    decays = per_channel(decays, channels, "decays").numpy()
    scales = per_channel(scales, channels, "scales").numpy()
    unit = float(np.abs(scales).max()) or 1.0
    reach = torch.linalg.norm(encoders).item() * torch.linalg.norm(decoders).item()
    system = active_system(matrix(recurrent), encoders, decoders, 1e-3 * tolerance * unit / reach if reach else 0.0)

    eigenvalues, left, right = _eigen(system.transition)
    spectral_radius = float(np.abs(eigenvalues).max(initial=0.0))
    modes = _modes(system, eigenvalues, left, right, decays, scales, max(tolerance, SAME_EIGENVALUE))
    error = _largest_moment_error(system, decays, scales, max(1.0, spectral_radius))
    return IntegratorReport(error / unit, tolerance, len(eigenvalues), spectral_radius, tuple(modes))


def g_coefficients(recurrent: Any, encoders: Any, decoders: Any) -> tuple[Tensor, Tensor]:
    r"""$g_i = (P^\dagger d)_i\, (P^{-1} e)_i$ for $W = P \Lambda P^{-1}$.

    Eigenvalues (rank,) and g (rank, channels, channels). Non-zero eigenvalues only, each with its own g;
    `is_generalizing_integrator` adds those of equal eigenvalues up, and also takes a W that cannot be diagonalised.
    """
    system = active_system(matrix(recurrent), columns(encoders), columns(decoders))
    eigenvalues, left, right = _eigen(system.transition)
    weights = [_simple_weights(system, left[:, i], right[:, i]) / eigenvalues[i] for i in range(len(eigenvalues))]
    shape = (len(eigenvalues), system.outputs.shape[0], system.inputs.shape[1])
    return torch.from_numpy(eigenvalues), torch.from_numpy(np.reshape(weights, shape))


def active_system(recurrent: Tensor, encoders: Tensor, decoders: Tensor, smallest: float = 0.0) -> ActiveSystem:
    r"""$K = \Sigma V^\dagger U$, $B = \Sigma V^\dagger E$, $C = D^\dagger U$ from $W = U \Sigma V^\dagger$.

    Singular values up to `smallest`, or within rounding of 0, are left out.
    """
    left, values, right = torch.linalg.svd(recurrent)
    rounding = len(recurrent) * torch.finfo(torch.float64).eps * values[0].item()
    rank = int((values > max(rounding, smallest)).sum())
    left, scaled = left[:, :rank], values[:rank, None] * right[:rank]
    return ActiveSystem((scaled @ left).numpy(), (scaled @ encoders).numpy(), (decoders.T @ left).numpy())


def _eigen(transition: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues (rank,) with left and right eigenvectors in columns (rank, rank)."""
    if transition.size == 0:
        return np.zeros(0, complex), np.zeros((0, 0)), np.zeros((0, 0))
    eigenvalues, left, right = map(np.asarray, eig(transition, left=True, right=True))
    return eigenvalues.astype(complex), left, right


def _largest_moment_error(system: ActiveSystem, decays: np.ndarray, scales: np.ndarray, radius: float) -> float:
    r"""$\max_q |\mu_q - s\gamma^q| / \rho^q$: the division keeps an unstable mode that nothing reads from overflow."""
    rank = len(system.transition)
    state, target, transition = system.inputs / radius, np.diag(scales * decays / radius), system.transition / radius
    largest = 0.0
    for _ in range(max(rank + 1, HORIZON)):
        largest = max(largest, float(np.abs(system.outputs @ state - target).max()))
        state, target = transition @ state, target * decays / radius
    return largest


def _modes(
    system: ActiveSystem,
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


def _simple_weights(system: ActiveSystem, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    r"""$\lambda g$ of an eigenvalue alone in its cluster, $C\, r\, l^* B / (l^* r)$: no inverse of P is taken."""
    return np.outer(system.outputs @ right, left.conj() @ system.inputs) / (left.conj() @ right)


def _cluster_weights(
    system: ActiveSystem, triangular: np.ndarray, basis: np.ndarray, cluster: np.ndarray
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
