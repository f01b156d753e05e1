r"""ReLU networks with few more neurons than the D (D + 1) that an exact solution requires (see docs/capacity.md).

In group g all currents are $l_j = \sigma_j\rho_j u_g$ with $\sigma_j = \pm 1$, $\rho_j \ge 0$ and
$\sum_{j \in g} \rho_j d_j = 0$. The remaining condition is $D^\dagger L = \sum_g w_g u_g^\dagger = 2$ with
$w_g = \sum_{j \in g} \sigma_j\rho_j d_j$. It is linear in the axes $u_g$, and D axes suffice.
"""

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Generator, Tensor

ENTRIES = 2_000_000  # entries of the decoders that all tries of `split` process together, which takes seconds


def balanced(start: Tensor, decoders: Tensor) -> Tensor | None:
    r"""Solve $\min_{\rho \ge 0} |\rho - \rho_0|^2$ with $\sum_j \rho_j d_j = 0$, for few neurons.

    Let Q be an orthonormal basis of the $\rho$ that satisfy the condition. Then $\rho = QQ^\dagger(\rho_0 + \lambda)$,
    where $\lambda \ge 0$ minimises $|Q^\dagger(\rho_0 + \lambda)|^2$ (Moreau). Q has as many rows as there are neurons,
    and nearly as many columns.

    Parameters
    ----------
    start : Tensor
        $\rho_0$, (neurons,).
    decoders : Tensor
        Rows $d_j$, (neurons, channels).

    Returns
    -------
    Tensor or None
        $\rho$, (neurons,), or None if only $\rho = 0$ satisfies the conditions.
    """
    if len(start) == 0:
        return None
    left, singular, _ = torch.linalg.svd(decoders, full_matrices=True)
    q = left[:, int((singular > 1e-12 * singular[0]).sum()) :]
    multipliers, _ = nnls(q.T.numpy(), -(q.T @ start).numpy())
    rho = (q @ (q.T @ (start + torch.from_numpy(multipliers)))).clamp(min=0)
    return rho if bool(rho.norm() > 1e-9 * start.norm()) else None


def turned_axes(decoders: Tensor, signed: Tensor, axes: Tensor, own: Tensor) -> Tensor | None:
    r"""Compute the $u_g$ of least $\sum_j \rho_j^2 |u_{g(j)} - \alpha a_{g(j)}|^2$ with $\sum_g w_g u_g^\dagger = 2$.

    Parameters
    ----------
    decoders : Tensor
        (neurons, channels).
    signed : Tensor
        $\sigma_j\rho_j$, (neurons,).
    axes : Tensor
        The axes a that the $u_g$ should be close to, (groups, channels).
    own : Tensor
        The group of each neuron, (neurons,).

    Returns
    -------
    Tensor or None
        u, (groups, channels), or None if the condition has no solution.
    """
    w, sizes = _group_sums(decoders, signed, own, len(axes))
    unit = w / sizes[:, None]
    if not bool(torch.linalg.svdvals(unit)[-1] > 1e-9 * decoders.norm()):
        return None  # the signs cancel, for example if all of them are equal in one channel
    goal = 2 * torch.eye(decoders.shape[1], dtype=axes.dtype)
    product = w.T @ axes
    start = axes * ((product * goal).sum() / product.square().sum())
    return start + torch.linalg.pinv(unit.T) @ (goal - w.T @ start) / sizes[:, None]


def better_signs(decoders: Tensor, signed: Tensor, own: Tensor) -> Tensor:
    r"""Flip signs in the $\sigma_j\rho_j$ of D groups, one at a time, as long as this decreases $|L|$.

    $|L|^2 = |2\hat w^{-1}|^2$ with $\hat w_g = w_g / |\rho_g|$. A flipped sign changes one row of $\hat w$, so that the
    Sherman-Morrison formula gives $|L|$ for all neurons of a group at once.

    Parameters
    ----------
    decoders : Tensor
        (neurons, channels).
    signed : Tensor
        $\sigma_j\rho_j$, (neurons,).
    own : Tensor
        The group of each neuron, (neurons,), from 0 to D - 1.

    Returns
    -------
    Tensor
        $\sigma_j\rho_j$ with the new signs, (neurons,).
    """
    signed = signed.clone()
    groups = [(own == g).nonzero()[:, 0] for g in range(decoders.shape[1])]
    w, sizes = _group_sums(decoders, signed, own, len(groups))
    inverse = torch.linalg.inv_ex(w / sizes[:, None]).inverse  # columns are the axes, with the length of L along them
    improved = True
    while improved:
        improved = False
        for g, members in enumerate(groups):
            changes = -2 * signed[members, None] * decoders[members] / sizes[g]
            relative = changes @ inverse  # row j: w + change_j in row g = (1 + relative_j in row g) w
            factors = relative / (1 + relative[:, g : g + 1])
            column = inverse[:, g]
            gain = -2 * factors @ (inverse.T @ column) + factors.square().sum(1) * (column @ column)
            best = int(gain.nan_to_num(nan=torch.inf).argmin())
            if gain[best] < -1e-6 * inverse.square().sum():
                signed[members[best]] *= -1
                w, _ = _group_sums(decoders, signed, own, len(groups))
                inverse = torch.linalg.inv_ex(w / sizes[:, None]).inverse
                improved = True
    return signed


def split(decoders: Tensor, gains: Tensor, generator: Generator) -> Tensor | None:
    r"""Divide the neurons into groups such that the convex hull of the decoder rows of each group contains 0.

    A vertex of $\{\rho \ge 0,\ \sum_j \rho_j d_j = 0,\ \sum_j \rho_j = 1\}$ has D + 1 neurons. One group after the
    other takes the neurons of a vertex with large gains. If no vertex is left, one or two groups return their neurons,
    and random numbers of growing size are added to the gains. The remaining neurons join the group of their largest
    gain.

    Parameters
    ----------
    decoders : Tensor
        (neurons, channels).
    gains : Tensor
        The value of each neuron for each group, (neurons, groups).
    generator : torch.Generator
        Draws the order of the groups and the random numbers.

    Returns
    -------
    Tensor or None
        The group of each neuron, (neurons,), or None if no such groups were found.
    """
    n, channels = decoders.shape
    groups, sizes = gains.shape[1], decoders.norm(dim=1)
    rows, worth = (decoders / sizes[:, None]).numpy(), (gains / sizes[:, None]).numpy()
    free, unread = -1, groups  # a neuron without a group, and one that no decoder reads
    own, noise = np.where(sizes > 0, free, unread), 0.0
    for _ in range(groups + min(200 * groups, ENTRIES // decoders.numel())):
        complete = np.unique(own[own >= 0])
        missing = np.setdiff1d(np.arange(groups), complete)
        if len(missing) == 0:
            undecided = (own == free) | (own == unread)
            return torch.where(torch.tensor(undecided), gains.argmax(1), torch.tensor(own))

        available, draws = np.flatnonzero(own == free), torch.rand(n + 2, generator=generator).numpy()
        group = missing[int(draws[-1] * len(missing))]
        vertex = _vertex(rows[available], worth[available, group] + noise * draws[available])
        if vertex is not None:
            own[available[vertex]] = group
        elif n < groups * (channels + 1) or len(complete) == 0:
            return None
        else:
            noise += 0.1 * worth.max()
            order = torch.randperm(len(complete), generator=generator).numpy()
            own[np.isin(own, complete[order[: 1 + int(2 * draws[-2])]])] = free
    return None


def _vertex(rows: np.ndarray, worth: np.ndarray) -> np.ndarray | None:
    r"""Find the neurons of a vertex of $\{\rho \ge 0,\ \sum_j \rho_j d_j = 0,\ \sum_j \rho_j = 1\}$, as a mask, or
    None.

    Non-negative least squares ends in a vertex, and prefers the columns that are longest.
    """
    if len(rows) == 0:  # without columns, nnls of SciPy 1.17 crashes the process
        return None
    lengths = (worth + 1e-3 * worth.max(initial=0)) ** 2
    sums = np.column_stack([rows, np.ones(len(rows))]).T * lengths
    rho, residual = nnls(sums, np.append(np.zeros(rows.shape[1]), 1.0))
    return rho * lengths > 1e-9 if residual < 1e-9 else None


def _group_sums(decoders: Tensor, signed: Tensor, own: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    r"""Compute $w_g = \sum_{j \in g} \sigma_j\rho_j d_j$, (groups, channels), and $|\rho_g|$, (groups,)."""
    w = decoders.new_zeros(groups, decoders.shape[1]).index_add_(0, own, signed[:, None] * decoders)
    return w, signed.new_zeros(groups).index_add_(0, own, signed.square()).sqrt()
