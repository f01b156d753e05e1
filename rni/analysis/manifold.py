r"""The current manifold (section 5): currents close to the span of the D leading left singular vectors of W,
and the linear map from the integrals to the coordinates in it."""

from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from rni.analysis.samples import require_integrals
from rni.core.errors import InputError
from rni.networks.network import Network
from rni.networks.vanilla import VanillaRNN


@torch.no_grad()
def current_ratio(net: Network | VanillaRNN, directions: Tensor, inputs: Tensor) -> float:
    r"""$r = \langle |\nu^\perp_t| \rangle_t / \langle |\nu^\parallel_t| \rangle_t$ inside and outside a subspace.

    `directions` (neurons, D) span it, orthonormal as singular vectors are. Currents are not stored.

    >>> net = rni.design(rni.Integration([0.9, 0.8]), neurons=50).network
    >>> left = rni.weights.svd(net.recurrent).left
    >>> rni.analysis.current_ratio(net, left, torch.randn(4, 100, 2)) < 1e-9  # W has rank 2
    True
    """
    inside = outside = 0.0
    directions = directions.double()
    if isinstance(net, VanillaRNN) and (spanned := net.spanned(inputs)):
        basis, coefficients = spanned[0].double(), torch.cat([c for c, _ in spanned[1]]).double()
        along = directions.T @ basis  # |nu - l l' nu| = |R c|, where Q R = B - l l' B
        across = torch.linalg.qr(basis - directions @ along, mode="r").R
        inside, outside = (float((coefficients @ part.T).norm(dim=1).sum()) for part in (along, across))
        return outside / inside if inside > 0 else float("nan")
    for nu, _ in chain.from_iterable(map(net.steps, net.groups(inputs))):
        nu = nu.double()  # squares of large single-precision numbers overflow
        coordinates = nu @ directions
        inside += float(coordinates.norm(dim=1).sum())
        outside += float((nu - coordinates @ directions.T).norm(dim=1).sum())
    return outside / inside if inside > 0 else float("nan")


def null_ratio(neurons: int, channels: int) -> float:
    r"""$r_{null} = \sqrt{n/D - 1}$: the ratio if all directions of the current were alike.

    >>> round(rni.analysis.null_ratio(neurons=1000, channels=2), 1)
    22.3
    """
    return (neurons / channels - 1) ** 0.5


def current_coordinates(currents: Tensor, directions: Tensor) -> Tensor:
    r"""$\alpha_{c,t} = l_c \cdot \nu_t$: (..., D) from currents (..., neurons) and orthonormal l (neurons, D).

    >>> net = rni.design(rni.Integration([0.9, 0.8]), neurons=50).network
    >>> left = rni.weights.svd(net.recurrent).left
    >>> rni.analysis.current_coordinates(net.currents(torch.randn(4, 100, 2).double()), left).shape
    torch.Size([4, 100, 2])
    """
    if directions.ndim != 2 or currents.shape[-1] != len(directions):
        raise InputError(
            f"currents, directions: shapes {tuple(currents.shape)}, {tuple(directions.shape)}; "
            "allowed: (..., neurons) and (neurons, D)"
        )
    return currents @ directions


class LinearMap(NamedTuple):
    r"""A matrix M (values, channels) with values $\simeq M \bar y$, and the share of each one's square it explains.

    >>> y = torch.randn(100, 2, generator=torch.Generator().manual_seed(0)).double()
    >>> line = rni.analysis.linear_map(2 * y, y)
    >>> line.matrix.round(decimals=6).tolist(), line.explained.round(decimals=6).tolist()
    ([[2.0, 0.0], [0.0, 2.0]], [1.0, 1.0])
    """

    matrix: Tensor
    explained: Tensor


def linear_map(values: Tensor, integrals: Tensor) -> LinearMap:
    r"""$\alpha_{c,t} = \sum_{c'} R_{c,c'}\,\bar y_{c',t}$ by regression through 0, with $R^2$ for each of the values.

    values (samples, K) are the D coordinates, and M is R; or the currents of all neurons, and row i of M is $s_i$.
    integrals (samples, channels). As the line passes through 0, $R^2$ is the part of the mean square, not of the
    variance; it is not a number for a value that is 0 throughout.

    >>> net = rni.design(rni.Integration([0.9, 0.8]), neurons=50).network
    >>> x = torch.randn(4, 100, 2).double()
    >>> y = net.task.targets(x).flatten(0, 1)
    >>> line = rni.analysis.linear_map(net.currents(x).detach().flatten(0, 1), y)
    >>> line.matrix.shape, bool(line.explained.nan_to_num(1).min() > 0.999999)
    (torch.Size([50, 2]), True)
    """
    require_integrals(integrals, values=values)
    # least squares by QR: integrals = Q R has full rank here, so that R M' = Q' values. The singular value
    # decomposition, which only lower ranks need, takes some ten times longer for many samples of many neurons.
    q, r = torch.linalg.qr(integrals)
    solution = torch.linalg.solve_triangular(r, q.T @ values, upper=True)
    return LinearMap(solution.T, explained(values, integrals @ solution))


def explained(values: Tensor, predicted: Tensor) -> Tensor:
    r"""$R^2 = 1 - \sum_t (v_t - \hat v_t)^2 / \sum_t v_t^2$ for each column of (samples, K).

    For neurons: `explained(activity, f(integrals @ vectors.T))` with their selectivity vectors.

    >>> rni.analysis.explained(torch.tensor([[2.0], [4.0]]), torch.tensor([[0.0], [3.0]])).tolist()
    [0.75]
    """
    return 1 - (values - predicted).square().sum(0) / values.square().sum(0)
