r"""How fast descent from W = 0 converges to a single-channel integrator, and with which learning rate.

Appendix "Minimum convergence time". Close to a minimum each Hessian eigenvector shrinks by $1 - \eta\lambda_I$ a step,
so the time to converge is the condition number $C = \lambda_{max} / \lambda_{min}$ at the learning rate $1 /
\lambda_{max}$. The integrators of one scale are a curve: one of the four eigenvalues, along the curve, is 0 and does
not count.
"""

from math import inf, pi, sqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rni.core.errors import InputError
from rni.theory._arrays import matrix
from rni.theory.averaged import LinearProblem, linear_problem, moment_jacobian
from rni.theory.manifolds import Plane, rank_one, singular_angles

# Eigenvalues that are not 0 on a curve of minima in the four dimensions of omega.
ACROSS_THE_CURVE = 3


class Convergence(NamedTuple):
    r"""The integrator of a scale to which descent converges fastest.

    omega (2, 2) and the angle of its state (see `manifolds.rank_one`); the largest and the smallest non-zero eigenvalue
    of the Hessian there.

    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0)
    >>> found = rni.theory.fastest_convergence(space, decay=0.9, scale=1.0, duration=3)
    >>> round(found.condition_number, 1), round(found.learning_rate, 4), round(found.contraction, 2)
    (11.7, 0.0607, 0.91)
    """

    angle: float
    omega: Tensor
    largest: float
    smallest: float

    @property
    def condition_number(self) -> float:
        r"""$C = \lambda_{max} / \lambda_{min}$: steps to shrink the distance by e at $\eta^*$."""
        return self.largest / self.smallest if self.smallest else inf

    @property
    def learning_rate(self) -> float:
        r"""$\eta^* = 1 / \lambda_{max}$; from twice that on, descent leaves this integrator.

        Descent from W = 0 may come to another one of the scale, where the curvature is larger, and not settle at rates
        that are stable here: `rni.training.limit` measures up to which it does.
        """
        return 1 / self.largest

    @property
    def contraction(self) -> float:
        r"""$1 - 1/C$: the factor by which the distance to the integrator shrinks a step; the loss, its square."""
        return 1 - 1 / self.condition_number


class Advice(NamedTuple):
    """What to expect and to avoid with these vectors, this decay and this duration.

    >>> rni.theory.Advice._fields
    ('convergence', 'best_scale', 'best_time', 'avoid')
    """

    convergence: Convergence  # at the scale asked for
    best_scale: float
    best_time: float  # condition number at the best scale
    avoid: list[tuple[float, float]]  # intervals of scales, slower than `slower` times the best


def hessian_spectrum(
    omega: Any, space: Plane, decay: float, scale: float, duration: int, covariance: Any = None
) -> Tensor:
    r"""Eigenvalues of $\mathcal{H} = 2 \sum_{qp} \chi_{qp}\, \partial_\omega\mu_q\, \partial_\omega\mu_p$ at a minimum.

    (..., min(T, 4)) in falling order for omega (..., 2, 2); those beyond T are 0. They are the squared singular values
    of $\sqrt{2\chi}\, \partial_\omega\mu$, which keeps twice the digits of an eigenvalue of $\mathcal{H}$ itself.

    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0)
    >>> omega = rni.theory.rank_one(space, decay=0.9, scale=1.0, angle=0.8)
    >>> rni.theory.hessian_spectrum(omega, space, decay=0.9, scale=1.0, duration=3).shape
    torch.Size([3])
    """
    return _spectrum(omega, *_problem(space, decay, scale, duration, covariance))


def condition_number(
    angle: Any, space: Plane, decay: float, scale: float, duration: int, covariance: Any = None
) -> Tensor:
    r"""$C(\theta) = \lambda_{max} / \lambda_{min}$ along the rank-1 integrators of scale s: the shape of `angle`.

    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0)
    >>> times = rni.theory.condition_number([0.7, 0.8, 0.9], space, decay=0.9, scale=1.0, duration=3)
    >>> times.shape, bool((times > 1).all())
    (torch.Size([3]), True)
    """
    spectrum = hessian_spectrum(rank_one(space, decay, scale, angle), space, decay, scale, duration, covariance)
    return spectrum[..., 0] / spectrum[..., ACROSS_THE_CURVE - 1]


def fastest_convergence(space: Plane, decay: float, scale: float, duration: int, covariance: Any = None) -> Convergence:
    r"""$\min_\theta C(\theta)$ over the integrators of scale s.

    The curve has two branches between the angles where it diverges. Close to them C changes on a scale of s, so the
    search is uniform in the logit of the position between them. For s = d.e a third direction is null
    and the condition number infinite; integrator and learning rate are then the limit from neighbouring scales.

    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0)
    >>> fast = rni.theory.fastest_convergence(space, decay=0.9, scale=1.0, duration=3)
    >>> slow = rni.theory.fastest_convergence(space, decay=0.9, scale=0.01, duration=3)
    >>> slow.condition_number > 10 * fast.condition_number
    True
    """
    if duration < ACROSS_THE_CURVE:
        raise InputError(
            f"duration: {duration}; allowed: at least {ACROSS_THE_CURVE}, below it minima need not integrate"
        )
    if scale == 0 or decay == 0:
        raise InputError(f"scale, decay: {scale}, {decay}; allowed: values other than 0")
    if abs(torch.linalg.det(torch.stack(space))) < 1e-12 * space.encoder.norm() * space.decoder.norm():
        raise InputError(f"overlap: {space.overlap:.6g}; allowed: |d.e| < |d||e|, the vectors must not be parallel")
    if abs(scale - space.overlap) <= 1e-9 * abs(scale):
        neighbour = fastest_convergence(space, decay, scale * (1 + 1e-6), duration, covariance)
        return neighbour._replace(smallest=0.0)

    start, end = sorted(singular_angles(space))
    branches = [(low, high) for low, high in ((start, end), (end, start + pi)) if high - low >= 1e-9]  # d.e = 0: one
    low, high = torch.tensor(branches, dtype=torch.float64).T[..., None]
    centre, grid = torch.zeros_like(low), torch.linspace(-1, 1, 201, dtype=torch.float64)
    problem = _problem(space, decay, scale, duration, covariance)
    for half_width in (25, 25 / 40, 25 / 1600):
        logit = centre + half_width * grid
        angles = low + (high - low) * torch.sigmoid(logit)
        spectrum = _spectrum(rank_one(space, decay, scale, angles), *problem)
        numbers = (spectrum[..., 0] / spectrum[..., ACROSS_THE_CURVE - 1]).nan_to_num(inf)
        centre = logit.gather(1, numbers.argmin(1, keepdim=True))
    angle = angles.flatten()[numbers.argmin()].item()
    omega = rank_one(space, decay, scale, angle)
    spectrum = _spectrum(omega, *problem)
    return Convergence(angle, omega, spectrum[0].item(), spectrum[ACROSS_THE_CURVE - 1].item())


def advise(space: Plane, decay: float, scale: float, duration: int, slower: float = 10.0) -> Advice:
    r"""Learning rate and time for this scale, the best scale, and the scales at which $C(s) >$ `slower` $\min_s C(s)$.

    Scales from 1e-3 to 10 times |d||e| of the sign asked for, with the neighbourhood of d.e looked at closely.

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
        sizes += [abs(space.overlap) * (1 + around), abs(space.overlap) * (1 - around), matrix([abs(space.overlap)])]
    grid = [sign * size for size in torch.cat(sizes).sort().values.tolist()]
    times = [fastest_convergence(space, decay, s, duration).condition_number for s in grid]
    best = min(range(len(grid)), key=times.__getitem__)
    slow = [time > slower * times[best] for time in times]
    return Advice(fastest_convergence(space, decay, scale, duration), grid[best], times[best], _runs(grid, slow))


def recipe_cosine(mixture: float) -> float:
    r"""$\frac{o}{\sqrt{o^2 + (1 - o)^2}}$: the cosine of e and d after the paper's $d \leftarrow o\, e + (1 - o)\, d$.

    The recipe draws unit vectors, orthogonal for large n; rescaling d afterwards keeps the cosine, not the product o.

    >>> round(rni.theory.recipe_cosine(0.8), 3), round(rni.theory.recipe_cosine(0.4), 3)
    (0.97, 0.555)
    """
    return mixture / sqrt(mixture**2 + (1 - mixture) ** 2)


def _problem(space: Plane, decay: float, scale: float, duration: int, covariance: Any) -> tuple[LinearProblem, Tensor]:
    r"""The network's, and $\sqrt{2\chi}$."""
    problem = linear_problem(space.encoder, space.decoder, decay, scale, duration, covariance)
    values, vectors = torch.linalg.eigh(problem.chi[:, 0, :, 0])
    return problem, (2 * values.clamp(min=0)).sqrt()[:, None] * vectors.T


def _spectrum(omega: Any, problem: LinearProblem, root: Tensor) -> Tensor:
    return torch.linalg.svdvals(root @ moment_jacobian(omega, problem)[..., 0, 0, :, :].flatten(-2)) ** 2


def _runs(grid: list[float], chosen: list[bool]) -> list[tuple[float, float]]:
    """First and last grid point of each run of chosen ones."""
    runs: list[tuple[float, float]] = []
    previous = False
    for value, keep in zip(grid, chosen, strict=True):
        if keep:
            runs = [*runs[:-1], (runs[-1][0], value)] if previous else [*runs, (value, value)]
        previous = keep
    return runs
