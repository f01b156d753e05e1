r"""ReLU networks with hardly more neurons than the D (D + 1) that an exact solution needs: see `docs/capacity.md`.

In population g all currents are $l_j = \sigma_j\rho_j u_g$ with $\sigma_j = \pm 1$, $\rho_j \ge 0$ and
$\sum_{j \in g} \rho_j d_j = 0$. What is left to meet is $D^\dagger L = \sum_g w_g u_g^\dagger = 2$ with
$w_g = \sum_{j \in g} \sigma_j\rho_j d_j$: linear in the axes $u_g$, and D of them are enough.
"""

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Generator, Tensor

ENTRIES = 2_000_000  # of decoders that all tries together look at: seconds


def balanced(start: Tensor, decoders: Tensor) -> Tensor | None:
    r"""$\min_{\rho \ge 0} |\rho - \rho_0|^2$ with $\sum_j \rho_j d_j = 0$: (members,), or None if that is $\rho = 0$.

    With Q an orthonormal basis of what the condition leaves, $\rho = QQ^\dagger(\rho_0 + \lambda)$, where the
    $\lambda \ge 0$ have the least $|Q^\dagger(\rho_0 + \lambda)|^2$ (Moreau). For few members: Q is square.
    """
    if len(start) == 0:
        return None
    left, singular, _ = torch.linalg.svd(decoders, full_matrices=True)
    q = left[:, int((singular > 1e-12 * singular[0]).sum()) :]
    multipliers, _ = nnls(q.T.numpy(), -(q.T @ start).numpy())
    rho = (q @ (q.T @ (start + torch.from_numpy(multipliers)))).clamp(min=0)
    return rho if bool(rho.norm() > 1e-9 * start.norm()) else None


def turned_axes(decoders: Tensor, signed: Tensor, axes: Tensor, own: Tensor) -> Tensor | None:
    r"""$u_g$ (groups, D) of least $\sum_j \rho_j^2 |u_{g(j)} - \alpha a_{g(j)}|^2$, a the axes; None if there are none.

    signed (neurons,) are the $\sigma_j\rho_j$, own (neurons,) the group of each neuron.
    """
    w, sizes = _sums(decoders, signed, own, len(axes))
    unit = w / sizes[:, None]
    if not bool(torch.linalg.svdvals(unit)[-1] > 1e-9 * decoders.norm()):
        return None  # the signs cancel: all of them alike, for one channel
    goal = 2 * torch.eye(decoders.shape[1], dtype=axes.dtype)
    reached = w.T @ axes
    start = axes * ((reached * goal).sum() / reached.square().sum())
    return start + torch.linalg.pinv(unit.T) @ (goal - w.T @ start) / sizes[:, None]


def better_signs(decoders: Tensor, signed: Tensor, own: Tensor) -> Tensor:
    r"""$\sigma_j\rho_j$ with signs of D groups turned, one after the other, as long as that lessens $|L|$.

    $|L|^2 = |2\hat w^{-1}|^2$ with $\hat w_g = w_g / |\rho_g|$, and a turned sign changes one row of $\hat w$:
    Sherman and Morrison's formula has $|L|$ for all neurons of a group at once.
    """
    signed = signed.clone()
    groups = [(own == g).nonzero()[:, 0] for g in range(decoders.shape[1])]
    w, sizes = _sums(decoders, signed, own, len(groups))
    inverse = torch.linalg.inv_ex(w / sizes[:, None]).inverse  # columns: the axes, of the length that L has along them
    turning = True
    while turning:
        turning = False
        for g, members in enumerate(groups):
            changes = -2 * signed[members, None] * decoders[members] / sizes[g]
            moved = changes @ inverse  # row j: (w + change_j at g) = (1 + moved_j at g) w
            factors = moved / (1 + moved[:, g : g + 1])
            column = inverse[:, g]
            gain = -2 * factors @ (inverse.T @ column) + factors.square().sum(1) * (column @ column)
            best = int(gain.nan_to_num(nan=torch.inf).argmin())
            if gain[best] < -1e-6 * inverse.square().sum():
                signed[members[best]] *= -1
                w, _ = _sums(decoders, signed, own, len(groups))
                inverse = torch.linalg.inv_ex(w / sizes[:, None]).inverse
                turning = True
    return signed


def split(decoders: Tensor, gains: Tensor, generator: Generator) -> Tensor | None:
    r"""A group for each neuron, (neurons,), so that each group's decoder rows have 0 in their convex hull; or None.

    gains (neurons, groups) say how much a neuron is worth in a group. A vertex of $\{\rho \ge 0,\ \sum_j \rho_j d_j =
    0,\ \sum_j \rho_j = 1\}$ has D + 1 neurons. One group after the other takes those of a good vertex; where none is
    left, one or two groups give theirs back and gains are drawn, more and more. The other neurons go where they are
    worth most.
    """
    n, channels = decoders.shape
    number, sizes = gains.shape[1], decoders.norm(dim=1)
    rows, worth = (part.numpy() for part in (decoders / sizes[:, None], gains / sizes[:, None]))
    own, noise = np.where(sizes > 0, -1, number), 0.0
    for _ in range(number + min(200 * number, ENTRIES // decoders.numel())):
        taken = np.unique(own[own >= 0])
        missing = np.setdiff1d(np.arange(number), taken)
        if len(missing) == 0:
            rest = (own < 0) | (own == number)
            return torch.where(torch.tensor(rest), gains.argmax(1), torch.tensor(own))
        free, draws = np.flatnonzero(own < 0), torch.rand(n + 2, generator=generator).numpy()
        group = missing[int(draws[-1] * len(missing))]
        vertex = _vertex(rows[free], worth[free, group] + noise * draws[free])
        if vertex is not None:
            own[free[vertex]] = group
        elif n < number * (channels + 1) or len(taken) == 0:
            return None
        else:
            noise += 0.1 * worth.max()
            order = torch.randperm(len(taken), generator=generator).numpy()
            own[np.isin(own, taken[order[: 1 + int(2 * draws[-2])]])] = -1
    return None


def _vertex(rows: np.ndarray, worth: np.ndarray) -> np.ndarray | None:
    r"""Which neurons are in a vertex of $\{\rho \ge 0,\ \sum_j \rho_j d_j = 0,\ \sum_j \rho_j = 1\}$; or None.

    Non-negative least squares ends in a vertex, and takes the longest columns first.
    """
    if len(rows) == 0:  # of no columns, SciPy 1.17's non-negative least squares ends the whole process
        return None
    lengths = (worth + 1e-3 * worth.max(initial=0)) ** 2
    sums = np.column_stack([rows, np.ones(len(rows))]).T * lengths
    rho, missed = nnls(sums, np.append(np.zeros(rows.shape[1]), 1.0))
    return rho * lengths > 1e-9 if missed < 1e-9 else None


def _sums(decoders: Tensor, signed: Tensor, own: Tensor, number: int) -> tuple[Tensor, Tensor]:
    r"""$w_g = \sum_{j \in g} \sigma_j\rho_j d_j$ (number, D), and $|\rho_g|$ (number,)."""
    w = decoders.new_zeros(number, decoders.shape[1]).index_add_(0, own, signed[:, None] * decoders)
    return w, signed.new_zeros(number).index_add_(0, own, signed.square()).sqrt()
