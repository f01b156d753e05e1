"""The design of a network for a task, and the test of how well it integrates."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rni import vectors
from rni.activations import Activation, make
from rni.activations.module import ActivationModule
from rni.core.arrays import as_real_tensor, require_finite, require_shape
from rni.core.errors import InputError, require_whole
from rni.core.rng import stream
from rni.core.text_result import TextResult, join_numbers
from rni.core.threads import threads
from rni.designs.certificate import certify
from rni.designs.linear import linear_factors
from rni.designs.relu import relu_factors
from rni.designs.smooth import largest_outputs, smooth_factors
from rni.networks.accuracy import relative_error
from rni.networks.network import Network
from rni.tasks.inputs import bursts, white_noise
from rni.tasks.integration import Integration, require_integration
from rni.weights import LowRank, svd

MARGIN = 1.05  # the box of integrals is larger than what inputs up to 1 reach, because errors push beyond it
EXACT = {"linear": linear_factors, "relu": relu_factors}
LARGEST_ERROR = {"exact": 1e-6, "approximate": 0.1}  # allowed relative errors over 2000 steps
ELEMENTS = 2**22  # numbers of states that are computed at a time
DEPENDENT = 1e-12  # smallest singular value of linearly dependent directions


@dataclass(frozen=True, repr=False)
class Design(TextResult):
    r"""A network with W of rank D, and how well it satisfies its conditions at points that its design did not use.

    Attributes
    ----------
    network : Network
        The network.
    offset : tuple of float
        q, which is 0 if f(0) is 0, as explained in `rni.designs.smooth`.
    output_residuals : tuple of float
        Root mean square of $d_c \cdot f(L(z + q)) - s_c\gamma_c z_c$, relative to that of $s_c\gamma_c z_c$.
    current_residuals : tuple of float
        Root mean square of $m_c \cdot f(L(z + q)) - \gamma_c z_c - q_c$, relative to that of $\gamma_c z_c$. These
        errors add up over $1/(1-\gamma)$ steps.
    singular_values : tuple of float
        The non-zero singular values of W.
    norm : float
        The Frobenius norm of W.
    seconds : float
        The time that the design took, without its test.
    errors : tuple of float
        The relative errors of the channels over 2000 steps, as `error` computes them.
    bounds : tuple of float or None
        The bounds of z, if they were given.

    Examples
    --------
    >>> design = rni.design(rni.Integration([0.99, 0.9]), neurons=100)
    >>> len(design.singular_values), max(design.output_residuals) < 1e-12
    (2, True)
    """

    network: Network
    offset: tuple[float, ...]
    output_residuals: tuple[float, ...]
    current_residuals: tuple[float, ...]
    singular_values: tuple[float, ...]
    norm: float
    seconds: float
    errors: tuple[float, ...]
    bounds: tuple[float, ...] | None = None

    def lines(self) -> Iterator[str]:
        net = self.network
        yield f"{net.neurons} neurons, {net.f!r}, decays {join_numbers(net.task.decays)}: {self.seconds:.2g} s"
        output, current = max(self.output_residuals), max(self.current_residuals)
        yield f"residuals on fresh points  outputs {output:.1e}, currents {current:.1e}"
        yield f"relative error, 2000 steps {join_numbers(self.errors, '.1e')}"
        yield f"singular values            {join_numbers(self.singular_values)}"
        yield f"norm of W                  {self.norm:.4g}"
        if max(net.task.decays) < 1:
            yield f"for any duration           {certify(net)}"

    def error(self, duration: int = 2000, seed: int = 0) -> tuple[float, ...]:
        """Simulate the network, and compute the relative error of each channel.

        The inputs are white noise, or bursts if the activation bounds the integrals. If bounds were given, the inputs
        are scaled so that the integrals just reach them.
        """
        return simulated_error(self.network, self.bounds, duration, seed)


@threads(1)
def design(
    task: Integration,
    neurons: int = 1000,
    activation: str | Mapping[str, Any] | Activation | ActivationModule | Callable[[Tensor], Tensor] = "relu",
    *,
    encoders: Any = None,
    decoders: Any = None,
    bounds: Sequence[float] | None = None,
    leak: float = 1.0,
    seed: int = 0,
) -> Design:
    r"""Design a network that integrates, with $W = L M^\dagger$ of rank D, without training, in float64.

    Linear and ReLU networks integrate exactly, up to rounding, for any number of channels. Other activations do so
    approximately, while $|z_c| \le$ `bounds`. Every design is bit-for-bit reproducible on machines of one kind.

    With a leak $\alpha$, $h \leftarrow (1-\alpha)h + \alpha f(W(h + xe))$, the coordinates $a = M^\dagger h$ follow
    $a \leftarrow (1-\alpha)a + \alpha M^\dagger f(L(a + x))$. The design for the decays $1 - (1-\gamma)/\alpha$ (see
    `Integration.without_leak`) is therefore the design for $\gamma$, and it is as exact as without a leak.

    Parameters
    ----------
    task : Integration
        The task, without decays and scales of 0.
    neurons : int, optional
        The number of neurons.
    activation : str or Activation, optional
        The activation.
    encoders, decoders : array, optional
        (neurons, channels), linearly independent. The default are those of a training with the same seed.
    bounds : sequence of float, optional
        The largest $|z_c|$, for activations other than linear and ReLU. The default is what inputs up to 1 can reach,
        $1 / (1 - \gamma_c)$.
    leak : float, optional
        $\alpha$, above 0 and up to 1.
    seed : int, optional
        The seed.

    Raises
    ------
    InputError
        If an argument is invalid, if no solution was found, or if the relative error in a simulation over 2000 steps is
        above 1e-6, or above 10 % for an approximate design.

    Examples
    --------
    >>> design = rni.design(rni.Integration([0.99, 0.9]), neurons=100)
    >>> max(design.error()) < 1e-9
    True
    >>> rni.design(rni.Integration([0.99, 0.9]), neurons=5)
    Traceback (most recent call last):
        ...
    rni.core.errors.InputError: neurons: no exact solution found for 5 of them; allowed: more neurons, ...
    """
    start = time.perf_counter()
    require_integration(task)
    for field, values in (("decays", task.decays), ("scales", task.scales)):
        if 0 in values:
            raise InputError(field, values, "numbers other than 0, in a design")
    require_whole("neurons", neurons, task.channels)
    require_whole("seed", seed, 0)

    # the network, whose W is replaced by the solution
    drawn = vectors.independent(neurons, task.channels, stream(seed, "vectors"))
    e = drawn.encoders if encoders is None else _independent_vectors("encoders", encoders, drawn.encoders)
    d = drawn.decoders if decoders is None else _independent_vectors("decoders", decoders, drawn.decoders)
    net = Network(task, e, d, LowRank(e, d), make(activation), leak)
    inner = task.without_leak(leak)
    scales, decays = e.new_tensor(inner.scales), e.new_tensor(inner.decays)
    if net.f.name in EXACT:
        if bounds is not None:
            raise InputError(
                "bounds", bounds, f"no bounds for {net.f.name!r}, which is exact for integrals of any size"
            )
        # The conditions hold for all z, so that the columns of L and M may be scaled. With E = E1 |E|, D = D1 |D|,
        # L = L1 S Gamma / |D| and M = M1 / |E| they are D1'f(L1 z) = z, M1'f(L1 z) = z / P and M1'E1 = 1, where
        # P = S / (|D| |E|).
        kind, box, offset = "exact", e.new_ones(task.channels), e.new_zeros(task.channels)
        e_norm, d_norm = e.norm(dim=0), d.norm(dim=0)
        solve = EXACT[net.f.name]
        unit_left, unit_right = solve(e / e_norm, d / d_norm, scales / d_norm / e_norm, stream(seed, "design"))
        left, right = unit_left * (scales * decays / d_norm), unit_right / e_norm
    else:
        kind, box = "approximate", box_of_integrals(inner, bounds)
        require_suitable_activation(net.f, inner, d, box)
        left, right, offset = smooth_factors(inner, e, d, net.f, MARGIN * box)
    net.recurrent = LowRank(left, right)
    seconds = time.perf_counter() - start

    # tests, at fresh points of the box and in a simulation
    generator = torch.Generator().manual_seed(seed + 1)
    points = max(16, min(256, ELEMENTS // neurons))
    z = (2 * torch.rand(points, task.channels, generator=generator, dtype=torch.float64) - 1) * box
    output_residuals, current_residuals = residuals(net, z, offset)
    given = None if bounds is None else tuple(box.tolist())
    errors = simulated_error(net, given)
    largest_error = max(math.inf if math.isnan(error) else error for error in errors)
    if largest_error > LARGEST_ERROR[kind]:
        help_text = advice(net, offset, box, current_residuals)
        raise InputError(
            "design",
            largest_error,
            f"at most {LARGEST_ERROR[kind]:g}; what may help: {help_text}, vectors further from dependent",
            problem=f"{net.f!r} with {neurons} neurons errs by {largest_error:.2g} of the integrals over 2000 steps",
        )

    spectrum = tuple(svd(net.recurrent).values.tolist())
    norm = sum(value**2 for value in spectrum) ** 0.5
    return Design(
        net, tuple(offset.tolist()), output_residuals, current_residuals, spectrum, norm, seconds, errors, given
    )


@torch.no_grad()
def residuals(net: Network, z: Tensor, offset: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    r"""Compute the residuals of $D^\dagger f(L(z + q)) = S\Gamma z$ and $M^\dagger f(L(z + q)) = \Gamma z + q$.

    Parameters
    ----------
    net : Network
        A network with the factors L and M.
    z : Tensor
        Points, (points, channels).
    offset : Tensor
        q, (channels,).

    Returns
    -------
    outputs, currents : tuple of float
        The root mean squares over the points, relative to those of $S\Gamma z$ and $\Gamma z$, for each channel.
    """
    factors = net.recurrent.factors()
    assert factors is not None
    (left, right), task = factors, net.task.without_leak(net.leak)
    rows = max(1, ELEMENTS // net.neurons)
    activities = (net.f(part @ left.T) for part in (z + offset).split(rows))
    pairs = [(h @ net.decoders, h @ right) for h in activities]
    output, coordinates = (torch.cat(part) for part in zip(*pairs, strict=True))
    decayed = z.new_tensor(task.decays) * z
    wanted = z.new_tensor(task.scales) * decayed
    output_sizes = (output - wanted).norm(dim=0) / wanted.norm(dim=0)
    current_sizes = (coordinates - decayed - offset).norm(dim=0) / decayed.norm(dim=0)
    return tuple(output_sizes.tolist()), tuple(current_sizes.tolist())


def simulated_error(
    net: Network, bounds: Sequence[float] | None, duration: int = 2000, seed: int = 0
) -> tuple[float, ...]:
    """Compute the relative error of each channel over a simulation, as `Design.error` explains."""
    generator = torch.Generator().manual_seed(seed)
    trajectories = max(1, min(16, 4000 // net.neurons))
    inputs = white_noise if net.f.name in EXACT else bursts
    x = inputs(trajectories, duration, net.channels, generator).double()
    if bounds is not None:
        # z = a + x, where a is proportional to the integrals before x
        integrals = Integration(net.task.decays).targets(x)
        decays, inner = x.new_tensor(net.task.decays), x.new_tensor(net.task.without_leak(net.leak).decays)
        before = torch.cat([torch.zeros_like(x[:, :1]), integrals[:, :-1]], 1)
        z = x + net.leak * inner / decays * before
        x = x * (x.new_tensor(bounds) / z.abs().amax((0, 1)))
    return tuple(relative_error(net, x).tolist())


def _independent_vectors(field: str, given: Any, drawn: Tensor) -> Tensor:
    """Check given vectors, which have to be independent for the conditions to have a solution."""
    values = as_real_tensor(field, given).detach().double()
    require_shape(field, values, *drawn.shape)
    require_finite(field, values)
    if bool((values.norm(dim=0) == 0).any()):
        raise InputError(field, None, "columns other than 0", problem="a column of 0")
    if float(torch.linalg.svdvals(values / values.norm(dim=0))[-1]) < DEPENDENT:
        allowed = "linearly independent columns, so that each channel has its own"
        raise InputError(field, None, allowed, problem="linearly dependent columns")
    return values


def box_of_integrals(task: Integration, bounds: Sequence[float] | None) -> Tensor:
    r"""Return the largest $|z_c|$, (channels,): `bounds`, or $1 / (1 - \gamma_c)$, which inputs up to 1 can reach."""
    if bounds is None:
        if max(task.decays) == 1:
            allowed = "numbers, because at decay 1 the integrals have no bounds"
            raise InputError("bounds", None, allowed, problem="missing")
        return torch.tensor([1 / (1 - decay) for decay in task.decays], dtype=torch.float64)
    box = as_real_tensor("bounds", bounds).double()
    if box.shape != (task.channels,) or not bool(((box > 0) & (box < torch.inf)).all()):
        raise InputError("bounds", bounds, f"{task.channels} positive numbers, one for each channel")
    return box


def require_suitable_activation(f: ActivationModule, task: Integration, decoders: Tensor, box: Tensor) -> None:
    """Raise an error if the activation is not an elementwise function, or if its outputs cannot reach the integrals."""
    nu = torch.linspace(-1, 1, 9, dtype=torch.float64)[:, None].expand(-1, len(decoders))
    h: Any = f(nu)
    if not isinstance(h, Tensor) or h.shape != nu.shape or h.dtype != nu.dtype or not bool(torch.isfinite(h).all()):
        raise InputError("activation", f, "an elementwise torch function with finite values that keeps the dtype")
    if bool((h == h[0]).all()):
        allowed = "a function that depends on the currents"
        raise InputError("activation", f, allowed, problem=f"{f!r} has the same activity at all currents")

    wanted = (box.new_tensor(task.scales) * box.new_tensor(task.decays)).abs() * box
    largest = largest_outputs(f, decoders)
    for c in range(task.channels):
        if wanted[c] > largest[c]:
            raise InputError(
                "bounds",
                float(wanted[c]),
                f"well below {largest[c]:.3g}, the largest output with these decoders: smaller bounds, larger decoders "
                "of both signs, more neurons (it grows as their square root), or relu and linear",
                problem=f"integrals of channel {c + 1} up to {wanted[c]:.3g}",
            )


@torch.no_grad()
def advice(net: Network, offset: Tensor, box: Tensor, current_residuals: Sequence[float]) -> str:
    """Say what may reduce the error of a design: less rounding, less activity at rest, or fewer steps that add up."""
    if net.f.name in EXACT:
        strengths = box.new_tensor(net.task.scales).abs() / net.decoders.norm(dim=0) / net.encoders.norm(dim=0)
        low, high = float(strengths.min()), float(strengths.max())
        return f"less rounding by scales nearer to |d| |e|, of which they are {low:.2g} to {high:.2g}"
    at_rest = float((offset.abs() / box).max())
    if at_rest > LARGEST_ERROR["approximate"]:
        return f"less activity at rest, whose output is {at_rest:.2g} of the largest integral, larger scales or bounds"
    steps = 1 / (1 - box.new_tensor(net.task.without_leak(net.leak).decays))
    worst = int((box.new_tensor(current_residuals) * steps).argmax())
    most = float(largest_outputs(net.f, net.decoders)[worst])
    within = f", well within the {most:.3g} that {net.f!r} gives with these decoders" if math.isfinite(most) else ""
    error = current_residuals[worst]
    added = f"{net.task.decays[worst]:g} adds up some {steps[worst]:.3g} steps, each off by {error:.1e}"
    return f"smaller decays ({added}), other bounds than {box[worst]:.3g}{within}"
