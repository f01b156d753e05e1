"""From a task to a network in well under a second, and what it is worth."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rni import vectors
from rni.activations import Activation
from rni.activations.module import ActivationModule
from rni.core.described import Described, numbers
from rni.core.errors import InputError
from rni.core.rng import stream
from rni.core.threads import threads
from rni.designs.certificate import certify
from rni.designs.exact import exact_factors, linear_factors
from rni.designs.relu import relu_factors
from rni.designs.smooth import largest_outputs, smooth_factors
from rni.losses.proxy import largest_coordinates
from rni.networks.accuracy import relative_error
from rni.networks.network import Network
from rni.tasks.inputs import bursts, white_noise
from rni.tasks.integration import Integration, require_integration
from rni.weights import LowRank, svd

MARGIN = 1.05  # the box of integrals is a little larger than what inputs up to 1 reach: errors push beyond it
EXACT = {"linear": linear_factors, "relu": relu_factors}
ELEMENTS = 2**22  # states computed at a time
LIMITS = {"exact": 1e-6, "approximate": 0.1}  # relative errors over 2000 steps, from which on it is no integrator
DEPENDENT = 1e-12  # smallest singular value of directions that are linearly dependent


@dataclass(frozen=True, repr=False)
class Design(Described):
    r"""A network with W of rank D, and how well it meets its conditions on points that its design did not use.

    output_residuals: root mean square of $d_c \cdot f(L(z + q)) - s_c\gamma_c z_c$ relative to that of
    $s_c\gamma_c z_c$; current_residuals: of $m_c \cdot f(L(z + q)) - \gamma_c z_c - q_c$ relative to that of
    $\gamma_c z_c$. The second adds up over $1/(1-\gamma)$ steps. offset: q, 0 where f(0) is 0, see `smooth.py`.
    norm: Frobenius norm of W. seconds: what the design took, without its test. bounds: of z, where they were given.

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
    bounds: tuple[float, ...] | None = None

    def lines(self) -> Iterator[str]:
        net = self.network
        yield f"{net.neurons} neurons, {net.f!r}, decays {numbers(net.task.decays)}: {self.seconds:.2g} s"
        output, current = max(self.output_residuals), max(self.current_residuals)
        yield f"residuals on fresh points  outputs {output:.1e}, currents {current:.1e}"
        yield f"relative error, 2000 steps {'  '.join(f'{error:.1e}' for error in self.error())}"
        yield f"singular values            {numbers(self.singular_values)}"
        yield f"norm of W                  {self.norm:.4g}"
        if max(net.task.decays) < 1:
            yield f"for any duration           {certify(net)}"

    def error(self, duration: int = 2000, seed: int = 0) -> tuple[float, ...]:
        """Relative error by channel over a simulation: on white noise, or on bursts if the integrals are bounded.

        Where bounds were given, the inputs are stretched so that the integrals just reach them.
        """
        net, generator = self.network, torch.Generator().manual_seed(seed)
        trajectories = max(1, min(16, 4000 // net.neurons))
        inputs = white_noise if net.f.name in EXACT else bursts
        x = inputs(trajectories, duration, net.channels, generator).double()
        if self.bounds is not None:
            z = _visited(net, x)
            x = x * (_row(self.bounds) / z.abs().amax((0, 1)))
        return tuple(relative_error(net, x).tolist())


@threads(1)
def design(
    task: Integration,
    neurons: int = 1000,
    activation: str | Mapping[str, Any] | Activation | ActivationModule | Callable[[Tensor], Tensor] = "relu",
    *,
    encoders: Tensor | np.ndarray | None = None,
    decoders: Tensor | np.ndarray | None = None,
    bounds: Sequence[float] | None = None,
    leak: float = 1.0,
    seed: int = 0,
) -> Design:
    r"""A network that integrates, with W = $L M^\dagger$ of rank D and no training; the same seed gives the same bits.

    Linear and ReLU networks integrate exactly, up to rounding, for any number of channels. Other activations do so
    approximately, while $|z_c| \le$ `bounds`, by default what inputs up to 1 can reach. Encoders and decoders are
    (neurons, channels); unless given, those of a training with the same seed. float64. What errs by more than
    1e-6, or 10 % where it is approximate, in a simulation over 2000 steps is refused.

    With a leak $\alpha$, $h \leftarrow (1-\alpha)h + \alpha f(W(h + xe))$: the coordinates $a = M^\dagger h$ follow
    $a \leftarrow (1-\alpha)a + \alpha M^\dagger f(L(a + x))$, so that the design for decays
    $1 - (1-\gamma)/\alpha$, see `Integration.without_leak`, is one for $\gamma$, as exact as without.

    >>> design = rni.design(rni.Integration([0.99, 0.9]), neurons=100)
    >>> max(design.error()) < 1e-9
    True
    >>> rni.design(rni.Integration([0.99, 0.9]), neurons=5)
    Traceback (most recent call last):
        ...
    rni.core.errors.InputError: neurons: no exact solution found for 5 of them; allowed: more neurons, ...
    """
    begun = time.perf_counter()
    require_integration(task)
    if any(decay == 0 for decay in task.decays) or any(scale == 0 for scale in task.scales):
        raise InputError(f"task: decays {task.decays}, scales {task.scales}; allowed in a design: none of them 0")
    if type(neurons) is not int or neurons < task.channels:
        raise InputError(f"neurons: {neurons!r}; allowed: {task.channels} or more, one for each channel")
    if type(seed) is not int or not 0 <= seed < 2**63:
        raise InputError(f"seed: {seed!r}; allowed: a whole number, 0 or more")
    drawn = vectors.independent(neurons, task.channels, stream(seed, "vectors"))
    e = _vectors("encoders", encoders, drawn.encoders)
    d = _vectors("decoders", decoders, drawn.decoders)
    f, inner = Network(task, e, d, LowRank(e, d), activation, leak).f, task.without_leak(leak)
    if f.name in EXACT:
        if bounds is not None:
            raise InputError(f"bounds: {bounds}; allowed: none for {f.name!r}, exact for integrals of any size")
        left, right = exact_factors(EXACT[f.name], inner, e, d, stream(seed, "design"))
        box, offset, kind = _row([1.0] * task.channels), _row([0.0] * task.channels), "exact"
    else:
        box, kind = _box(inner, bounds), "approximate"
        _check_activation(f, inner, d, box)
        left, right, offset = smooth_factors(inner, e, d, f, MARGIN * box)
    net = Network(task, e, d, LowRank(left, right), f, leak)
    seconds = time.perf_counter() - begun
    output, current = residuals(net, _fresh_points(net, box, seed), offset)
    spectrum = tuple(svd(net.recurrent).values.tolist())
    norm = sum(value**2 for value in spectrum) ** 0.5
    given = None if bounds is None else tuple(box.tolist())
    made = Design(net, tuple(offset.tolist()), output, current, spectrum, norm, seconds, given)
    error = _row(made.error()).nan_to_num(nan=torch.inf).max()
    if error > LIMITS[kind]:
        raise InputError(
            f"design: {f!r} with {neurons} neurons errs by {error:.2g} of the integrals over 2000 steps; allowed: at "
            f"most {LIMITS[kind]:g}; what may help: {_help(net, offset, box, current)}, vectors further from dependent"
        )
    return made


@torch.no_grad()
def residuals(net: Network, z: Tensor, offset: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    r"""Of $D^\dagger f(L(z + q)) = S\Gamma z$ and of $M^\dagger f(L(z + q)) = \Gamma z + q$, by channel."""
    factors = net.recurrent.factors()
    assert factors is not None
    (left, right), task = factors, net.task.without_leak(net.leak)
    rows = max(1, ELEMENTS // net.neurons)
    activities = (net.f(part @ left.T) for part in (z + offset).split(rows))
    pairs = [(h @ net.decoders, h @ right) for h in activities]
    output, coordinates = (torch.cat(part) for part in zip(*pairs, strict=True))
    decayed = _row(task.decays) * z
    wanted = _row(task.scales) * decayed
    return _relative(output - wanted, wanted), _relative(coordinates - decayed - offset, decayed)


def _visited(net: Network, x: Tensor) -> Tensor:
    r"""The z = a + x that inputs lead to, where a is in proportion to the integrals until then."""
    integrals = Integration(net.task.decays).targets(x)
    decays, inner = _row(net.task.decays), _row(net.task.without_leak(net.leak).decays)
    before = torch.cat([torch.zeros_like(x[:, :1]), integrals[:, :-1]], 1)
    return x + net.leak * inner / decays * before


def _fresh_points(net: Network, box: Tensor, seed: int) -> Tensor:
    """Where the conditions are checked: anywhere in the box, whose size does not matter where f is homogeneous."""
    generator = torch.Generator().manual_seed(seed + 1)
    number = max(16, min(256, ELEMENTS // net.neurons))
    return (2 * torch.rand(number, net.channels, generator=generator, dtype=torch.float64) - 1) * box


def _vectors(name: str, given: Tensor | np.ndarray | None, drawn: Tensor) -> Tensor:
    r"""In float64, and independent: else $M^\dagger E = 1$ or $D^\dagger f(Lz) = S\Gamma z$ can not be met."""
    try:
        made = drawn if given is None else torch.as_tensor(given).detach().to("cpu", torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{name}: {type(given).__name__}; allowed: an array of numbers") from None
    if made.shape != drawn.shape:
        raise InputError(f"{name}: shape {tuple(made.shape)}; allowed: {tuple(drawn.shape)}, (neurons, channels)")
    if not bool(torch.isfinite(made).all()) or bool((made.norm(dim=0) == 0).any()):
        raise InputError(f"{name}: a value that is not finite, or a column of 0; allowed: finite numbers, no column 0")
    smallest = float(torch.linalg.svdvals(made / made.norm(dim=0))[-1])
    if smallest < DEPENDENT:
        raise InputError(f"{name}: linearly dependent; allowed: independent ones, so that each channel has its own")
    return made


def _box(task: Integration, bounds: Sequence[float] | None) -> Tensor:
    try:
        box = _row(largest_coordinates(task) if bounds is None else bounds)
    except (TypeError, ValueError, RuntimeError):
        box = _row([])
    if box.shape != (task.channels,) or not bool(((box > 0) & (box < torch.inf)).all()):
        raise InputError(f"bounds: {bounds!r}; allowed: {task.channels} positive numbers, one for each channel")
    return box


def _check_activation(f: ActivationModule, task: Integration, decoders: Tensor, box: Tensor) -> None:
    """Refuse what is no function of each current, and integrals that no currents can give."""
    nu = torch.linspace(-1, 1, 9, dtype=torch.float64)[:, None].expand(-1, len(decoders))
    h: Any = f(nu)
    if not isinstance(h, Tensor) or h.shape != nu.shape or h.dtype != nu.dtype or not bool(torch.isfinite(h).all()):
        raise InputError(f"activation: {f!r}; allowed: an elementwise torch function with finite values of its dtype")
    if bool((h == h[0]).all()):
        raise InputError(f"activation: {f!r} has the same activity at all currents; allowed: one that depends on them")
    wanted = (_row(task.scales) * _row(task.decays)).abs() * box
    largest = largest_outputs(f, decoders)
    for c in range(task.channels):
        if wanted[c] > largest[c]:
            raise InputError(
                f"bounds: integrals of channel {c + 1} up to {wanted[c]:.3g}; allowed: well below {largest[c]:.3g}, "
                f"the most that {f!r} gives with these decoders, which grows but as the square root of the "
                f"{len(decoders)} neurons: smaller bounds, larger decoders of both signs, or relu and linear, which "
                "hold integrals of any size"
            )


@torch.no_grad()
def _help(net: Network, offset: Tensor, box: Tensor, off: Sequence[float]) -> str:
    """What stands between a network and its integrals: rounding, activity at rest, or steps that are `off` add up."""
    if net.f.name in EXACT:
        strengths = _row(net.task.scales).abs() / net.decoders.norm(dim=0) / net.encoders.norm(dim=0)
        low, high = float(strengths.min()), float(strengths.max())
        return f"less rounding by scales nearer to |d| |e|, of which they are {low:.2g} to {high:.2g}"
    at_rest = float((offset.abs() / box).max())
    if at_rest > LIMITS["approximate"]:
        return f"less activity at rest, whose output is {at_rest:.2g} of the largest integral, larger scales or bounds"
    steps = 1 / (1 - _row(net.task.without_leak(net.leak).decays))
    worst = int((_row(off) * steps).argmax())
    most = float(largest_outputs(net.f, net.decoders)[worst])
    within = f", well within the {most:.3g} that {net.f!r} gives with these decoders" if math.isfinite(most) else ""
    added = f"{net.task.decays[worst]:g} adds up some {steps[worst]:.3g} steps, each off by {off[worst]:.1e}"
    return f"smaller decays ({added}), other bounds than {box[worst]:.3g}{within}"


def _relative(error: Tensor, signal: Tensor) -> tuple[float, ...]:
    return tuple((error.norm(dim=0) / signal.norm(dim=0)).tolist())


def _row(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)
