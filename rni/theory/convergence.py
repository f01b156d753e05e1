r"""The time and the learning rate with which descent from W = 0 converges to a single-channel integrator.

The formulas are those of the appendix "Minimum convergence time". Close to a minimum each step multiplies the component
along an eigenvector of the Hessian by $1 - \eta\lambda_I$. The time to converge is therefore the condition number
$C = \lambda_{max} / \lambda_{min}$, at the learning rate $1 / \lambda_{max}$. The integrators of one scale form a
curve. The one of the four eigenvalues that belongs to the direction of this curve is 0 and does not count.
"""

from math import inf, pi, sqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rni.core.errors import InputError
from rni.theory.averaged import LinearProblem, linear_problem, moment_jacobian
from rni.theory.manifolds import Plane, rank_one, singular_angles

NONZERO_EIGENVALUES = 3  # of the four dimensions of omega, all but the direction of the curve of minima


class Convergence(NamedTuple):
    r"""The integrator of a given scale to which descent converges fastest.

    Attributes
    ----------
    angle : float
        The angle of its state, as in `rni.theory.rank_one`.
    omega : Tensor
        Its $\omega$, (2, 2).
    largest, smallest : float
        The largest and the smallest non-zero eigenvalue of the Hessian at $\omega$.

    Examples
    --------
    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0)
    >>> fastest = rni.theory.fastest_convergence(space, decay=0.9, scale=1.0, duration=3)
    >>> round(fastest.condition_number, 1), round(fastest.learning_rate, 4), round(fastest.contraction, 2)
    (11.7, 0.0607, 0.91)
    """

    angle: float
    omega: Tensor
    largest: float
    smallest: float

    @property
    def condition_number(self) -> float:
        r"""$C = \lambda_{max} / \lambda_{min}$, the steps in which the distance shrinks by a factor e at $\eta^*$."""
        return self.largest / self.smallest if self.smallest else inf

    @property
    def learning_rate(self) -> float:
        r"""$\eta^* = 1 / \lambda_{max}$. From twice this learning rate on, descent leaves this integrator.

        Descent from W = 0 may reach another integrator of the scale, where the curvature is larger, and may not settle
        at learning rates that are stable here. `rni.training.stability` measures up to which learning rate it settles.
        """
        return 1 / self.largest

    @property
    def contraction(self) -> float:
        r"""$1 - 1/C$, by which each step multiplies the distance to the integrator. The loss is multiplied by its
        square.
        """
        return 1 - 1 / self.condition_number


class Advice(NamedTuple):
    """What to expect, and what to avoid, with given vectors, decay and duration.

    Attributes
    ----------
    convergence : Convergence
        At the given scale.
    best_scale : float
        The scale with the smallest condition number.
    best_time : float
        The condition number at the best scale.
    avoid : list of (float, float)
        Intervals of scales whose condition number is too large, as `advise` defines it.

    Examples
    --------
    >>> rni.theory.Advice._fields
    ('convergence', 'best_scale', 'best_time', 'avoid')
    """

    convergence: Convergence
    best_scale: float
    best_time: float
    avoid: list[tuple[float, float]]


def hessian_spectrum(
    omega: Any, space: Plane, decay: float, scale: float, duration: int, covariance: Any = None
) -> Tensor:
    r"""Compute the eigenvalues of $\mathcal{H} = 2 \sum_{qp} \chi_{qp}\, \partial_\omega\mu_q\, \partial_\omega\mu_p$.

    This is the Hessian at a minimum. Its eigenvalues are computed as the squared singular values of
    $\sqrt{2\chi}\, \partial_\omega\mu$, which keeps twice as many digits.

    Parameters
    ----------
    omega : array
        A minimum, (..., 2, 2).
    space : Plane
        The plane of encoder and decoder.
    decay, scale : float
        $\gamma$ and s.
    duration : int
        T.
    covariance : array, optional
        Covariance of the inputs, as in `rni.theory.moments.input_correlation`. The default is white noise.

    Returns
    -------
    Tensor
        (..., min(T, 4)), in descending order. The eigenvalues beyond T are 0 and are not returned.

    Examples
    --------
    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0)
    >>> omega = rni.theory.rank_one(space, decay=0.9, scale=1.0, angle=0.8)
    >>> rni.theory.hessian_spectrum(omega, space, decay=0.9, scale=1.0, duration=3).shape
    torch.Size([3])
    """
    return _spectrum(omega, *_problem(space, decay, scale, duration, covariance))


def condition_number(
    angle: Any, space: Plane, decay: float, scale: float, duration: int, covariance: Any = None
) -> Tensor:
    r"""Compute $C(\theta) = \lambda_{max} / \lambda_{min}$ along the curve of the rank-1 integrators of scale s.

    Parameters
    ----------
    angle : float or array
        $\theta$, of any shape, as in `rni.theory.rank_one`.
    space : Plane
        The plane of encoder and decoder.
    decay, scale : float
        $\gamma$ and s.
    duration : int
        T.
    covariance : array, optional
        Covariance of the inputs, as in `rni.theory.moments.input_correlation`. The default is white noise.

    Returns
    -------
    Tensor
        The condition numbers, in the shape of `angle`.

    Examples
    --------
    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0)
    >>> times = rni.theory.condition_number([0.7, 0.8, 0.9], space, decay=0.9, scale=1.0, duration=3)
    >>> times.shape, bool((times > 1).all())
    (torch.Size([3]), True)
    """
    spectrum = hessian_spectrum(rank_one(space, decay, scale, angle), space, decay, scale, duration, covariance)
    return spectrum[..., 0] / spectrum[..., NONZERO_EIGENVALUES - 1]


def fastest_convergence(space: Plane, decay: float, scale: float, duration: int, covariance: Any = None) -> Convergence:
    r"""Compute $\min_\theta C(\theta)$ over the rank-1 integrators of scale s.

    The curve of the integrators has two branches between the angles at which it diverges. Close to these angles C
    changes on a scale of s. The search is therefore uniform in the logit of the position on the branch.

    For s = d.e a third eigenvalue is 0, and the condition number is infinite. The integrator and the learning rate are
    then the limits from neighbouring scales.

    Parameters
    ----------
    space : Plane
        The plane of encoder and decoder.
    decay, scale : float
        $\gamma$ and s.
    duration : int
        T.
    covariance : array, optional
        Covariance of the inputs, as in `rni.theory.moments.input_correlation`. The default is white noise.

    Raises
    ------
    InputError
        If the duration is below 3, if the scale or the decay is 0, or if the vectors are parallel.

    Examples
    --------
    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0)
    >>> fast = rni.theory.fastest_convergence(space, decay=0.9, scale=1.0, duration=3)
    >>> slow = rni.theory.fastest_convergence(space, decay=0.9, scale=0.01, duration=3)
    >>> slow.condition_number > 10 * fast.condition_number
    True
    """
    if duration < NONZERO_EIGENVALUES:
        raise InputError(
            "duration", duration, f"{NONZERO_EIGENVALUES} or more, because shorter minima need not integrate"
        )
    for field, value in (("scale", scale), ("decay", decay)):
        if value == 0:
            raise InputError(field, value, "a number other than 0")
    if abs(torch.linalg.det(torch.stack(space))) < 1e-12 * space.encoder.norm() * space.decoder.norm():
        raise InputError("overlap", space.overlap, "|d.e| < |d||e|, so that the vectors are not parallel")
    if abs(scale - space.overlap) <= 1e-9 * abs(scale):
        neighbour = fastest_convergence(space, decay, scale * (1 + 1e-6), duration, covariance)
        return neighbour._replace(smallest=0.0)

    start, end = sorted(singular_angles(space))
    both = ((start, end), (end, start + pi))
    branches = [(low, high) for low, high in both if high - low >= 1e-9]  # for d.e = 0 there is only one
    low, high = torch.tensor(branches, dtype=torch.float64).T[..., None]
    centre, grid = torch.zeros_like(low), torch.linspace(-1, 1, 201, dtype=torch.float64)
    problem = _problem(space, decay, scale, duration, covariance)
    for half_width in (25, 25 / 40, 25 / 1600):  # each grid refines the previous one around its minimum
        logit = centre + half_width * grid
        angles = low + (high - low) * torch.sigmoid(logit)
        spectrum = _spectrum(rank_one(space, decay, scale, angles), *problem)
        numbers = (spectrum[..., 0] / spectrum[..., NONZERO_EIGENVALUES - 1]).nan_to_num(inf)
        centre = logit.gather(1, numbers.argmin(1, keepdim=True))
    angle = angles.flatten()[numbers.argmin()].item()
    omega = rank_one(space, decay, scale, angle)
    spectrum = _spectrum(omega, *problem)
    return Convergence(angle, omega, spectrum[0].item(), spectrum[NONZERO_EIGENVALUES - 1].item())


def advise(space: Plane, decay: float, scale: float, duration: int, slower: float = 10.0) -> Advice:
    r"""Compute the learning rate and the time for a scale, the best scale, and the scales to avoid.

    The function tries scales from 1e-3 to 10 times |d||e| that have the sign of the given scale. The grid is finer in
    the neighbourhood of d.e, where descent is slow.

    Parameters
    ----------
    space : Plane
        The plane of encoder and decoder.
    decay, scale : float
        $\gamma$ and s.
    duration : int
        T.
    slower : float, optional
        Scales are to be avoided if $C(s) >$ `slower` $\min_s C(s)$.

    Examples
    --------
    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0.5)
    >>> advice = rni.theory.advise(space, decay=0.9, scale=1.0, duration=3)
    >>> advice.avoid[0][0] < 0.5 < advice.avoid[-1][1]  # around d.e descent is slow
    True
    """
    sign = 1.0 if scale > 0 else -1.0
    unit = (space.encoder.norm() * space.decoder.norm()).item()
    around = torch.logspace(-3, -0.5, 12, dtype=torch.float64)
    sizes = [unit * torch.logspace(-3, 1, 81, dtype=torch.float64)]
    if sign * space.overlap > 0:
        overlap = abs(space.overlap)
        sizes += [overlap * (1 + around), overlap * (1 - around), torch.tensor([overlap], dtype=torch.float64)]
    grid = [sign * size for size in torch.cat(sizes).sort().values.tolist()]
    times = [fastest_convergence(space, decay, s, duration).condition_number for s in grid]
    best = min(range(len(grid)), key=times.__getitem__)

    # intervals of consecutive slow scales
    avoid: list[tuple[float, float]] = []
    previous_slow = False
    for s, time in zip(grid, times, strict=True):
        slow = time > slower * times[best]
        if slow and previous_slow:
            avoid[-1] = (avoid[-1][0], s)
        elif slow:
            avoid.append((s, s))
        previous_slow = slow
    return Advice(fastest_convergence(space, decay, scale, duration), grid[best], times[best], avoid)


def recipe_cosine(mixture: float) -> float:
    r"""Compute $\frac{o}{\sqrt{o^2 + (1 - o)^2}}$, the cosine of e and d after the paper's
    $d \leftarrow o\, e + (1 - o)\, d$.

    The recipe of the paper draws unit vectors, which are orthogonal for large n. Rescaling d afterwards preserves the
    cosine, but not the product o.

    Parameters
    ----------
    mixture : float
        o.

    Examples
    --------
    >>> round(rni.theory.recipe_cosine(0.8), 3), round(rni.theory.recipe_cosine(0.4), 3)
    (0.97, 0.555)
    """
    return mixture / sqrt(mixture**2 + (1 - mixture) ** 2)


def _problem(space: Plane, decay: float, scale: float, duration: int, covariance: Any) -> tuple[LinearProblem, Tensor]:
    r"""Return the problem of the plane, and $\sqrt{2\chi}$."""
    problem = linear_problem(space.encoder, space.decoder, decay, scale, duration, covariance)
    values, vectors = torch.linalg.eigh(problem.chi[:, 0, :, 0])
    return problem, (2 * values.clamp(min=0)).sqrt()[:, None] * vectors.T


def _spectrum(omega: Any, problem: LinearProblem, root: Tensor) -> Tensor:
    jacobian = moment_jacobian(omega, problem)[..., 0, 0, :, :].flatten(-2)
    return torch.linalg.svdvals(root @ jacobian) ** 2
