r"""Approximate integrators with any activation: each neuron belongs to one channel.

Let the neurons of population c have the currents $\nu_j = \rho_j a_c$. Both conditions are then sums over populations
of functions of one $a_c$. They hold on the whole box if they hold on its D axes. For L this means
$\sum_{j \in c} d_j (f(\rho_j t) - f(0)) = s_c\gamma_c t\,\hat c$, which are D curves. There are many more neurons, and
the Levenberg-Marquardt method finds their $\rho_j$. M follows by ridge regression.

If f(0) is not 0, the outputs contain a constant $k = D^\dagger f(0)$, which no W can change at a = 0. The integrals are
therefore represented by $a = z + q$ with the offset $q = -(S\Gamma)^{-1} k$. The outputs are then correct, M has to
satisfy $a \to \Gamma(a - q) + q$, and the start from rest, a = 0, is an error k that decays as the integrals do.
"""

import torch
from torch import Tensor

from rni.activations.module import ActivationModule
from rni.core.errors import InputError
from rni.tasks.integration import Integration

NODES = 80  # points of each axis at which the conditions are imposed
STEPS = 100  # of the Levenberg-Marquardt method
RIDGE = 1e-7  # relative to the largest squared singular value; more costs accuracy, less makes W large


def smooth_factors(
    task: Integration, encoders: Tensor, decoders: Tensor, f: ActivationModule, bounds: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Compute L and M with $D^\dagger f(L(z + q)) \approx S\Gamma z$ and $M^\dagger f(L(z + q)) \approx \Gamma z + q$.

    Parameters
    ----------
    task : Integration
        The task, without a leak.
    encoders, decoders : Tensor
        (neurons, channels).
    f : Activation
        The activation.
    bounds : Tensor
        The largest $|z_c|$, (channels,).

    Returns
    -------
    left, right : Tensor
        L and M, (neurons, channels).
    offset : Tensor
        q, (channels,).
    """
    n, channels = decoders.shape
    # unit decoders, with the scales divided by the lengths of the given ones
    scales, decays = decoders.new_tensor(task.scales) / decoders.norm(dim=0), decoders.new_tensor(task.decays)
    decoders, gains = decoders / decoders.norm(dim=0), scales * decays

    # q, which moves the box of a
    at_rest = f(decoders.new_zeros(1, n))[0][:, None] * decoders
    offset = -at_rest.sum(0) / gains
    bounds = bounds + offset.abs()

    # L: each neuron belongs to the channel of its largest decoder
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
        # parameters of f that differ between neurons are restricted to those of this channel
        values = {name: v.detach()[members] if v.ndim else v.detach() for name, v in f.values().items()}
        left[members, c] = _currents(t, wanted, decoders[members], c, ActivationModule(f.activation, values))

    # M
    ridges = RIDGE / (scales / encoders.norm(dim=0)).square().clamp(min=1)  # |W| grows with the strength anyway
    return left, _right(decays, ridges, encoders, left, f, bounds[:, None] * nodes, offset), offset


def largest_outputs(f: ActivationModule, decoders: Tensor) -> Tensor:
    r"""Compute the largest possible outputs, $\min(\max_\nu d_c \cdot f(\nu),\ -\min_\nu d_c \cdot f(\nu))$:
    (channels,).

    With Gaussian decoders they are about $|d|\sqrt{n / 2\pi}$ for sigmoids and twice as large for tanh. They are huge
    if f is not bounded. The function looks for the extremes of f on a grid.
    """
    n = len(decoders)
    sizes = torch.logspace(-3, 12, max(16, min(500, 2**21 // n)), dtype=decoders.dtype)
    h = f(torch.cat([-sizes, sizes])[:, None].expand(-1, n)).nan_to_num(nan=torch.finfo(decoders.dtype).max)
    low, high = (decoders * extreme[:, None] for extreme in (h.amin(0), h.amax(0)))
    return torch.minimum(torch.maximum(low, high).sum(0), -torch.minimum(low, high).sum(0)).clamp(min=0)


def _nodes(like: Tensor) -> Tensor:
    """Return points of [-1, 1] that are denser at 0, where neurons with a threshold are hardest to fit, and at the
    ends.
    """
    x = torch.cos(torch.pi * (torch.arange(NODES).to(like) + 0.5) / NODES)
    return x * x.abs()


def _currents(t: Tensor, wanted: Tensor, decoders: Tensor, channel: int, f: ActivationModule) -> Tensor:
    r"""Find $\rho$, (neurons,), with $\sum_j d_j f(\rho_j t) =$ `wanted`, (nodes, channels).

    The method starts from the best of two families of $\rho$. The first family are multiples of the decoder of the
    channel. The second family are multiples of $1 / (0.1 + v_j)$ with the signs of this decoder and v spread evenly
    over [0, 1]. The outputs of n neurons can grow as $\sqrt n$, and the integrals do not. Of many neurons with
    thresholds, most therefore remain below their threshold. In the first family all others reach it at large t, and in
    the second family they reach it one after the other.
    """

    def residual(rho: Tensor) -> Tensor:
        return (f(t[:, None] * rho) @ decoders - wanted).T.flatten()

    # starts
    own = decoders[:, channel] * wanted[:, channel].sub(wanted[:, channel].mean()).dot(t).sign()
    unit = own / (own.square().mean().sqrt() * t.abs().max())
    starts = [size * unit for size in torch.logspace(-9, 2, 56).tolist()]
    spread = (0.5 + 0.6180339887498949 * torch.arange(len(own), dtype=own.dtype)) % 1
    even = own.sign() / ((0.1 + spread) * t.abs().max())
    starts += [size * even for size in torch.logspace(-4, 2, 31).tolist()]
    rho = min(starts, key=lambda start: float(residual(start).norm().nan_to_num(nan=torch.inf)))

    # Levenberg-Marquardt steps, while five steps reduce the error by 2 % or more
    error, damping = residual(rho), 1e-2
    sizes, wide = [float(error.norm())], len(error) <= len(rho)
    while len(sizes) <= 5 or (sizes[-1] < 0.98 * sizes[-6] and len(sizes) < STEPS):
        slopes = f.derivative(t[:, None] * rho) * t[:, None]
        jacobian = (decoders.T[:, None, :] * slopes).flatten(0, 1)
        # J'(JJ' + c)^-1 = (J'J + c)^-1 J', so the smaller of both matrices is factorised
        normal = jacobian @ jacobian.T if wide else (decoders @ decoders.T) * (slopes.T @ slopes)
        unit_damping = normal.trace() / len(error)
        goal = error if wide else jacobian.T @ error
        while damping < 1e6:
            damped = normal.clone()
            damped.diagonal().add_(damping * unit_damping)
            solved = torch.cholesky_solve(goal[:, None], torch.linalg.cholesky_ex(damped).L)[:, 0]
            step = jacobian.T @ solved if wide else solved
            next_error = residual(rho - step)
            if next_error.norm() < sizes[-1] and bool(torch.isfinite(step).all()):
                break
            damping *= 6
        else:
            break
        rho, error, damping = rho - step, next_error, max(damping / 6, 1e-10)
        sizes.append(float(error.norm()))
    return rho


def _right(
    decays: Tensor, ridges: Tensor, encoders: Tensor, left: Tensor, f: ActivationModule, t: Tensor, offset: Tensor
) -> Tensor:
    r"""Compute M with $M^\dagger E = 1$ and $M^\dagger f(La) \approx \Gamma(a - q) + q$ at the nodes t (channels,
    nodes).
    """
    channels = left.shape[1]
    a = torch.diag_embed(t.T).transpose(0, 1).reshape(-1, channels)
    features = f(a @ left.T)
    if not bool(torch.isfinite(features).all()):
        raise InputError("bounds", None, "smaller bounds", problem=f"{f!r} has no finite activity for such integrals")

    # M = base + a part orthogonal to the encoders, which ridge regression finds
    lengths = encoders.norm(dim=0)
    basis, _ = torch.linalg.qr(encoders / lengths)
    base = torch.linalg.pinv(encoders / lengths).T / lengths
    free = features - (features @ basis) @ basis.T
    wanted = decays * (a - offset) + offset
    u, values, v = torch.linalg.svd(free, full_matrices=False)
    shrunk = values[:, None] / (values[:, None] ** 2 + ridges * values[0] ** 2)
    return base + v.T @ (shrunk * (u.T @ (wanted - features @ base)))
