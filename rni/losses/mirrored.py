r"""The gradient of the proxy loss on pairs of points z and -z, from the products of one half of the points.

Where $f(-\nu) = \sigma f(\nu) + a\nu + b$, as for ReLU ($\sigma, a, b = 1, -1, 0$) or sigmoids of threshold 0
($-1, 0, 1$), states and currents at -z follow from those at z by terms of rank D + 1 in $c = (z, 1)$.
"""

import torch
from torch import Tensor

from rni.activations import Mirror
from rni.losses.gradient import RECURRENT, Gradient
from rni.networks.network import Network
from rni.tasks.integration import Integration


def is_mirrored(z: Tensor) -> bool:
    """Return whether the second half of the points is minus the first half."""
    half, odd = divmod(len(z), 2)
    return not odd and torch.equal(z[half:], -z[:half])


@torch.no_grad()
def mirrored_gradient(
    net: Network,
    task: Integration,
    z: Tensor,
    mirror: Mirror,
    current_weight: float = 1.0,
    factor: float = 1.0,
    parameters: frozenset[str] = RECURRENT,
) -> tuple[float, Gradient]:
    r"""Return what `proxy_gradient` returns for the points z and -z together.

    With the residual of the currents $\kappa$ and $r = f(WEz) - E\,\Gamma z$ at z, those at -z are
    $\kappa^- = \sigma\kappa + A c$ and $r^- = \sigma r + B c$ with $A = ((1 + \sigma) WE\,\Gamma + a\,WWE,\ b\,W1)$ and
    $B = ((1 + \sigma) E\,\Gamma + a\,WE,\ b\,1)$; so that
    $\kappa r^\dagger + \kappa^- r^{-\dagger} = 2\kappa r^\dagger + \sigma\kappa c^\dagger B^\dagger +
    A\,(\sigma c r^\dagger + c c^\dagger B^\dagger)$. The derivative at -z is $-\sigma f' - a$.
    The shape of z is (points / 2, channels).
    """
    sign, slope, offset = mirror
    points, channels = z.shape
    decays, scales = z.new_tensor(task.decays), z.new_tensor(task.scales)
    w, e, d = net.recurrent, net.encoders.T.contiguous(), net.decoders.T.contiguous()  # as rows
    c, driven = torch.cat([z, z.new_ones(points, 1)], 1), w(e)
    # the rows of the gradient's factors, all of which one product with W takes
    rows = [points, channels + 1, channels + 1, channels]
    left, right = e.new_empty(2, sum(rows), net.neurons)
    h, linear, b, _ = right.split(rows)
    nu = z @ driven
    h.copy_(net.f(nu))
    linear[:-1], linear[-1] = slope * driven, offset  # f(-nu) = sign f(nu) + c @ linear
    b.copy_(linear)
    b[:-1] += (1 + sign) * decays[:, None] * e
    y, target = h @ d.T, scales * decays * z
    output, opposite = y - target, sign * y + c @ (linear @ d.T) + target

    fed = points + channels + 1
    w(right[:fed], out=left[:fed])
    current, a, crossed, first = left.split(rows)
    current.addmm_(decays * z, driven, alpha=-1)
    a[:-1] += (1 + sign) * decays[:, None] * driven
    torch.mm(c.T, current, out=crossed)
    moments = c.T @ c
    both = 2 * (float(current.square().sum()) + sign * float((crossed * a).sum())) + float((moments * (a @ a.T)).sum())
    loss = factor * (float(output.square().sum()) + float(opposite.square().sum()) + current_weight * both)

    output, opposite = 2 * factor * output, 2 * factor * opposite
    together = output + sign * opposite
    decoder_gradient = h.T @ together + linear.T @ (c.T @ opposite) if "decoders" in parameters else None
    if parameters <= {"decoders"}:
        return loss, Gradient(left[:0], right[:0], decoder_gradient)
    left[:-channels] *= 2 * factor * current_weight
    pulled, pulled_a, pulled_crossed = w.pull_back(left[:-channels]).split(rows[:-1])
    # f'(z) g(z) + (sign f'(z) + slope) g(-z) for the errors g before the derivative; half of its first part:
    pulled.addmm_(torch.cat([together, sign * c], 1), torch.cat([d, pulled_a]), alpha=0.5)
    torch.mm(2 * z.T, pulled.mul_(net.f.derivative_at(nu, h)), out=first)
    if slope:  # pulled_crossed is that of c, the last row not of z
        first += slope * (z.T @ opposite @ d + sign * pulled_crossed[:-1] + z.T @ c @ pulled_a)
    encoder_gradient = None
    if "encoders" in parameters:
        apart = (1 - sign) * crossed[:-1] - z.T @ c @ a
        encoder_gradient = w.pull_back(first - decays[:, None] * apart).T
    if "recurrent" not in parameters:
        return loss, Gradient(left[:0], right[:0], decoder_gradient, encoder_gradient)
    residual = h.addmm_(decays * z, e, alpha=-1)
    torch.addmm(moments @ b, c.T, residual, alpha=sign, out=linear)  # the factor of a; f(-nu) is not needed any more
    b *= sign
    residual *= 2
    right[-channels:] = e
    return loss, Gradient(left, right, decoder_gradient, encoder_gradient)
