r"""The dimension of samples and the current manifold (section 5 of the paper).

The currents of a trained integrator are close to the span of the D leading left singular vectors of W. The integrals
map linearly to the coordinates in this subspace.
"""

from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from rni.core.arrays import require_finite, require_independent_columns, require_shape
from rni.core.errors import InputError
from rni.networks.network import Network
from rni.networks.vanilla import VanillaRNN


class Principal(NamedTuple):
    r"""Principal components of samples.

    Attributes
    ----------
    mean : Tensor (neurons,)
        The mean of the samples.
    directions : Tensor (neurons, k)
        The directions of the largest variance about the mean.
    variances : Tensor (k,)
        The variances $\lambda_k$ along them, in descending order.
    components : int
        The number of directions that hold 99 % of the variance.
    participation : float
        The participation ratio $(\sum_k \lambda_k)^2 / \sum_k \lambda_k^2$: the number of directions, if they shared
        the variance evenly.

    Examples
    --------
    >>> samples = torch.randn(1000, 2, generator=torch.Generator().manual_seed(0)) @ torch.randn(2, 50)
    >>> found = rni.analysis.principal(samples)
    >>> found.components <= 2, found.coordinates(samples, 2).shape, found.ratio(samples, 2) < 1e-5
    (True, torch.Size([1000, 2]), True)
    """

    mean: Tensor
    directions: Tensor
    variances: Tensor
    components: int
    participation: float

    def coordinates(self, samples: Tensor, dimension: int) -> Tensor:
        """Return the coordinates (..., dimension) of samples (..., neurons) along the first directions."""
        return (samples.double() - self.mean) @ self.directions[:, :dimension]

    def ratio(self, samples: Tensor, dimension: int) -> float:
        r"""Return $\langle |\nu^\perp|\rangle / \langle |\nu^\parallel|\rangle$ for the first directions."""
        inside = self.coordinates(samples, dimension)
        outside = samples.double() - self.mean - inside @ self.directions[:, :dimension].T
        return float(outside.norm(dim=-1).mean() / inside.norm(dim=-1).mean())


def principal(samples: Tensor) -> Principal:
    """Compute the principal components of samples (samples, neurons).

    Examples
    --------
    >>> found = rni.analysis.principal(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
    >>> found.variances.tolist(), found.components
    ([1.0, 0.0], 1)
    """
    samples = samples.double()
    mean = samples.mean(0)
    values, vectors = torch.linalg.eigh((samples - mean).T @ (samples - mean) / len(samples))
    variances = values.flip(0).clamp(min=0)
    components = int((variances.cumsum(0) / variances.sum() < 0.99).sum()) + 1
    participation = float(variances.sum().square() / variances.square().sum())
    return Principal(mean, vectors.flip(1), variances, components, participation)


def outliers(values: Tensor, most: int = 20) -> int:
    r"""Return how many singular values of W stand out.

    This is the $k$ with the largest ratio $\sigma_k / \sigma_{k+1}$, up to k = `most`. It is 0 for W = 0.

    Examples
    --------
    >>> rni.analysis.outliers(torch.tensor([5.0, 4.0, 0.1, 0.09, 0.08]))
    2
    """
    if len(values) < 2 or not values[0] > 0:
        return int((values > 0).sum())
    rounding = float(values[0] * len(values) * torch.finfo(values.dtype).eps)
    leading = values[: most + 1].clamp(min=rounding)
    return int((leading[:-1] / leading[1:]).argmax()) + 1


@torch.no_grad()
def current_ratio(net: Network | VanillaRNN, directions: Tensor, inputs: Tensor) -> float:
    r"""Return the ratio r of the currents outside and inside a subspace.

    $r = \langle |\nu^\perp_t| \rangle_t / \langle |\nu^\parallel_t| \rangle_t$.

    Parameters
    ----------
    net : Network or VanillaRNN
        The network. Its currents are not stored.
    directions : Tensor (neurons, D)
        An orthonormal basis of the subspace, such as singular vectors.
    inputs : Tensor (batch, time, channels)
        The inputs under which the currents are measured.

    Examples
    --------
    >>> net = rni.design(rni.Integration([0.9, 0.8]), neurons=50).network
    >>> left = rni.weights.svd(net.recurrent).left
    >>> rni.analysis.current_ratio(net, left, torch.randn(4, 100, 2)) < 1e-9  # W has rank 2
    True
    """
    inside = outside = 0.0
    directions = directions.double()
    if isinstance(net, VanillaRNN) and (spanned := net.spanned(inputs)):
        # nu = B c, and |nu - l l' nu| = |R c| with the QR decomposition Q R = B - l l' B
        basis, coefficients = spanned[0].double(), torch.cat([c for c, _ in spanned[1]]).double()
        within = directions.T @ basis
        beyond = torch.linalg.qr(basis - directions @ within, mode="r").R
        inside, outside = (float((coefficients @ rows.T).norm(dim=1).sum()) for rows in (within, beyond))
        return outside / inside if inside > 0 else float("nan")
    for nu, _ in chain.from_iterable(map(net.steps, net.groups(inputs))):
        nu = nu.double()  # squares of large single-precision numbers overflow
        coordinates = nu @ directions
        inside += float(coordinates.norm(dim=1).sum())
        outside += float((nu - coordinates @ directions.T).norm(dim=1).sum())
    return outside / inside if inside > 0 else float("nan")


def null_ratio(neurons: int, channels: int) -> float:
    r"""Return the ratio $r_{null} = \sqrt{n/D - 1}$ of currents that have no preferred direction.

    Examples
    --------
    >>> round(rni.analysis.null_ratio(neurons=1000, channels=2), 1)
    22.3
    """
    return (neurons / channels - 1) ** 0.5


def current_coordinates(currents: Tensor, directions: Tensor) -> Tensor:
    r"""Return the coordinates $\alpha_{c,t} = l_c \cdot \nu_t$ of currents, (..., D).

    Parameters
    ----------
    currents : Tensor (..., neurons)
        The currents $\nu_t$.
    directions : Tensor (neurons, D)
        Orthonormal directions $l_c$.

    Examples
    --------
    >>> net = rni.design(rni.Integration([0.9, 0.8]), neurons=50).network
    >>> left = rni.weights.svd(net.recurrent).left
    >>> rni.analysis.current_coordinates(net.currents(torch.randn(4, 100, 2).double()), left).shape
    torch.Size([4, 100, 2])
    """
    if directions.ndim != 2 or currents.shape[-1] != len(directions):
        shape = tuple(directions.shape)
        raise InputError("directions", shape, f"({currents.shape[-1]}, D)", problem=f"shape {shape}")
    return currents @ directions


class LinearMap(NamedTuple):
    r"""A linear map from the integrals to other values.

    Attributes
    ----------
    matrix : Tensor (values, channels)
        The matrix M with values $\simeq M \bar y$.
    explained : Tensor (values,)
        The part of the mean square of each value that the map explains.

    Examples
    --------
    >>> y = torch.randn(100, 2, generator=torch.Generator().manual_seed(0)).double()
    >>> line = rni.analysis.linear_map(2 * y, y)
    >>> line.matrix.round(decimals=6).abs().tolist(), line.explained.round(decimals=6).tolist()
    ([[2.0, 0.0], [0.0, 2.0]], [1.0, 1.0])
    """

    matrix: Tensor
    explained: Tensor


def linear_map(values: Tensor, integrals: Tensor) -> LinearMap:
    r"""Fit $\alpha_{c,t} = \sum_{c'} R_{c,c'}\,\bar y_{c',t}$ by regression through 0.

    The explained part $R^2$ refers to the mean square and not to the variance, because the line passes through 0. It is
    NaN for a value that is 0 throughout.

    Parameters
    ----------
    values : Tensor (samples, values)
        The D coordinates of currents, for which the matrix is R; or the currents of all neurons, for which row i of the
        matrix is the selectivity vector $s_i$.
    integrals : Tensor (samples, channels)
        The integrals $\bar y$ at the same samples.

    Raises
    ------
    InputError
        If shapes or samples do not fit, or if the integrals of the samples are linearly dependent.

    Examples
    --------
    >>> net = rni.design(rni.Integration([0.9, 0.8]), neurons=50).network
    >>> x = torch.randn(4, 100, 2).double()
    >>> y = net.task.targets(x).flatten(0, 1)
    >>> line = rni.analysis.linear_map(net.currents(x).detach().flatten(0, 1), y)
    >>> line.matrix.shape, bool(line.explained.nan_to_num(1).min() > 0.999999)
    (torch.Size([50, 2]), True)
    """
    require_shape("integrals", integrals, "samples", "channels")
    require_shape("values", values, len(integrals), "values")
    require_finite("integrals", integrals)
    require_finite("values", values)
    require_independent_columns("integrals", integrals)
    # least squares by QR: integrals = Q R has full rank here, so that R M' = Q' values. The singular value
    # decomposition, which only lower ranks need, takes some ten times longer for many samples of many neurons.
    q, r = torch.linalg.qr(integrals)
    solution = torch.linalg.solve_triangular(r, q.T @ values, upper=True)
    return LinearMap(solution.T, explained(values, integrals @ solution))


def explained(values: Tensor, predicted: Tensor) -> Tensor:
    r"""Return $R^2 = 1 - \sum_t (v_t - \hat v_t)^2 / \sum_t v_t^2$ for each column of (samples, K).

    For the activity of neurons with selectivity vectors, use `explained(activity, f(integrals @ vectors.T))`.

    Examples
    --------
    >>> rni.analysis.explained(torch.tensor([[2.0], [4.0]]), torch.tensor([[0.0], [3.0]])).tolist()
    [0.75]
    """
    return 1 - (values - predicted).square().sum(0) / values.square().sum(0)
