r"""Any activation: each neuron is given to one channel, and each population does a problem of one variable.

If the neurons of population c have currents $\nu_j = \rho_j a_c$, both conditions are sums over populations of
functions of one $a_c$, so they hold on the whole box once they hold on its D axes. For L that is
$\sum_{j \in c} d_j (f(\rho_j t) - f(0)) = s_c\gamma_c t\,\hat c$: D curves and many more neurons, solved for the
$\rho_j$ by Levenberg and Marquardt's method. M is then a ridge regression.

Where f(0) is not 0 the outputs have a constant $k = D^\dagger f(0)$ that no W can change at a = 0. So the integrals
are kept at $a = z + q$, with the offset $q = -(S\Gamma)^{-1} k$: the outputs are right, $a \to \Gamma(a - q) + q$ is
the rule for M, and starting from rest, a = 0, means an error k that decays as the integrals do.
"""

import torch
from torch import Tensor

from rni.activations.module import ActivationModule
from rni.core.errors import InputError
from rni.tasks.integration import Integration

NODES = 80
STEPS = 100
RIDGE = 1e-7  # of the largest squared singular value: more costs accuracy, less makes W large and sensitive to noise


def smooth_factors(
    task: Integration, encoders: Tensor, decoders: Tensor, f: ActivationModule, bounds: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    r"""L and M, both (neurons, channels), and q (channels,), for integrals with $|z_c| \le$ `bounds` (channels,)."""
    n, channels = decoders.shape
    scales, decays = decoders.new_tensor(task.scales) / decoders.norm(dim=0), decoders.new_tensor(task.decays)
    decoders, gains = decoders / decoders.norm(dim=0), scales * decays
    at_rest = f(decoders.new_zeros(1, n))[0][:, None] * decoders
    offset = -at_rest.sum(0) / gains
    bounds = bounds + offset.abs()
    own = decoders.abs().argmax(dim=1)
    nodes = _nodes(decoders)
    left = torch.zeros_like(decoders)
    for c in range(channels):
        members = (own == c).nonzero()[:, 0]
        if len(members) == 0:
            continue
        t = bounds[c] * nodes
        wanted = at_rest[members].sum(0).repeat(NODES, 1)
        wanted[:, c] += gains[c] * t
        left[members, c] = _currents(t, wanted, decoders[members], c, _restricted(f, members))
    ridges = RIDGE / (scales / encoders.norm(dim=0)).square().clamp(min=1)  # |W| grows with the strength anyway
    return left, _right(decays, ridges, encoders, left, f, bounds[:, None] * nodes, offset), offset


def largest_outputs(f: ActivationModule, decoders: Tensor) -> Tensor:
    r"""$\min(\max_\nu d_c \cdot f(\nu),\ -\min_\nu d_c \cdot f(\nu))$, whatever the currents: (channels,).

    About $|d|\sqrt{n / 2\pi}$ for sigmoids and twice that for tanh, with Gaussian decoders; infinite where f is not
    bounded. Extremes of f are looked for on a grid.
    """
    n = len(decoders)
    sizes = torch.logspace(-3, 12, max(16, min(500, 2**21 // n)), dtype=decoders.dtype)
    h = f(torch.cat([-sizes, sizes])[:, None].expand(-1, n)).nan_to_num(nan=torch.finfo(decoders.dtype).max)
    low, high = (decoders * extreme[:, None] for extreme in (h.amin(0), h.amax(0)))
    return torch.minimum(torch.maximum(low, high).sum(0), -torch.minimum(low, high).sum(0)).clamp(min=0)


def _nodes(like: Tensor) -> Tensor:
    """Points of [-1, 1], denser towards 0, where neurons with a threshold are hardest to fit, and towards the ends."""
    x = torch.cos(torch.pi * (torch.arange(NODES).to(like) + 0.5) / NODES)
    return x * x.abs()


def _restricted(f: ActivationModule, neurons: Tensor) -> ActivationModule:
    """The activation of some of the neurons, where its parameters differ between them."""
    values = {name: v.detach()[neurons] if v.ndim else v.detach() for name, v in f.values().items()}
    return ActivationModule(f.activation, values)


def _currents(t: Tensor, wanted: Tensor, decoders: Tensor, channel: int, f: ActivationModule) -> Tensor:
    r"""$\rho$ (m,) with $\sum_j d_j f(\rho_j t) =$ wanted (nodes, D), from the best of two families of starts.

    Multiples of the own decoder; and multiples of $1 / (0.1 + v_j)$ with the signs of the own decoder and v spread over
    [0, 1]. The outputs that n neurons can give grow as $\sqrt n$ and the integrals do not, so that of many neurons with
    thresholds most stay below theirs, and those of the first family all come to it at large t. In the second they do
    one after the other, evenly.
    """

    def residual(rho: Tensor) -> Tensor:
        return (f(t[:, None] * rho) @ decoders - wanted).T.flatten()

    own = decoders[:, channel] * wanted[:, channel].sub(wanted[:, channel].mean()).dot(t).sign()
    unit = own / (own.square().mean().sqrt() * t.abs().max())
    starts = [size * unit for size in torch.logspace(-9, 2, 56).tolist()]
    spread = (0.5 + 0.6180339887498949 * torch.arange(len(own), dtype=own.dtype)) % 1
    even = own.sign() / ((0.1 + spread) * t.abs().max())
    starts += [size * even for size in torch.logspace(-4, 2, 31).tolist()]
    rho = min(starts, key=lambda start: float(residual(start).norm().nan_to_num(nan=torch.inf)))
    error, damping = residual(rho), 1e-2
    sizes, wide = [float(error.norm())], len(error) <= len(rho)
    while len(sizes) <= 5 or (sizes[-1] < 0.98 * sizes[-6] and len(sizes) < STEPS):
        slopes = f.derivative(t[:, None] * rho) * t[:, None]
        jacobian = (decoders.T[:, None, :] * slopes).flatten(0, 1)
        # J'(JJ' + c)^-1 = (J'J + c)^-1 J': by the smaller of both matrices
        normal = jacobian @ jacobian.T if wide else (decoders @ decoders.T) * (slopes.T @ slopes)
        unit_damping = normal.trace() / len(error)
        goal = error if wide else jacobian.T @ error
        while damping < 1e6:
            damped = normal.clone()
            damped.diagonal().add_(damping * unit_damping)
            solved = torch.cholesky_solve(goal[:, None], torch.linalg.cholesky_ex(damped).L)[:, 0]
            step = jacobian.T @ solved if wide else solved
            stepped = residual(rho - step)
            if stepped.norm() < sizes[-1] and bool(torch.isfinite(step).all()):
                break
            damping *= 6
        else:
            break
        rho, error, damping = rho - step, stepped, max(damping / 6, 1e-10)
        sizes.append(float(error.norm()))
    return rho


def _right(
    decays: Tensor, ridges: Tensor, encoders: Tensor, left: Tensor, f: ActivationModule, t: Tensor, offset: Tensor
) -> Tensor:
    r"""M with $M^\dagger E = 1$, $M^\dagger f(La) \approx \Gamma(a - q) + q$ at the nodes t (channels, nodes)."""
    channels = left.shape[1]
    a = torch.diag_embed(t.T).transpose(0, 1).reshape(-1, channels)
    features = f(a @ left.T)
    if not bool(torch.isfinite(features).all()):
        raise InputError(f"activation: {f!r} has no finite activity for such integrals; allowed: smaller bounds")
    lengths = encoders.norm(dim=0)
    basis, _ = torch.linalg.qr(encoders / lengths)
    base = torch.linalg.pinv(encoders / lengths).T / lengths
    free = features - (features @ basis) @ basis.T
    wanted = decays * (a - offset) + offset
    u, values, v = torch.linalg.svd(free, full_matrices=False)
    shrunk = values[:, None] / (values[:, None] ** 2 + ridges * values[0] ** 2)
    return base + v.T @ (shrunk * (u.T @ (wanted - features @ base)))
