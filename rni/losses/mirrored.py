r"""The proxy loss on points in pairs z and -z, by the products of one half.

Where $f(-\nu) = \sigma f(\nu) + a\nu + b$, as for ReLU ($\sigma, a, b = 1, -1, 0$) or sigmoids of threshold 0
($-1, 0, 1$), states and currents at -z are those at z but for terms of rank D + 1 in $c = (z, 1)$.
"""

import torch
from torch import Tensor

from rni.activation import Mirror
from rni.losses.gradient import Gradient, Trained, trained_parts
from rni.network import Network


def is_mirrored(z: Tensor) -> bool:
    """Whether the second half of the points is minus the first."""
    half, odd = divmod(len(z), 2)
    return not odd and torch.equal(z[half:], -z[:half])


@torch.no_grad()
def mirrored_gradient(
    net: Network,
    z: Tensor,
    mirror: Mirror,
    current_weight: float = 1.0,
    factor: float = 1.0,
    train: Trained = "recurrent",
) -> tuple[float, Gradient]:
    r"""`proxy_gradient` at all of z and -z.

    With the residual of the currents $\kappa$ and $r = f(WEz) - E\,\Gamma z$ at z, those at -z are
    $\kappa^- = \sigma\kappa + A c$ and $r^- = \sigma r + B c$ with $A = ((1 + \sigma) WE\,\Gamma + a\,WWE,\ b\,W1)$ and
    $B = ((1 + \sigma) E\,\Gamma + a\,WE,\ b\,1)$; so that
    $\kappa r^\dagger + \kappa^- r^{-\dagger} = 2\kappa r^\dagger + \sigma\kappa c^\dagger B^\dagger +
    A\,(\sigma c r^\dagger + c c^\dagger B^\dagger)$. The derivative at -z is $-\sigma f' - a$.
    z: (points / 2, channels).
    """
    parts = trained_parts(net, train)
    sign, slope, offset = mirror
    decays, scales = z.new_tensor(net.task.decays), z.new_tensor(net.task.scales)
    w, e, d = net.recurrent, net.encoders.T.contiguous(), net.decoders.T.contiguous()  # as rows
    c, one = torch.cat([z, z.new_ones(len(z), 1)], 1), e.new_ones(1, net.neurons)
    driven = w(e)
    linear = torch.cat([slope * driven, offset * one])  # f(-nu) = sign f(nu) + c @ linear
    a, b = w(linear), linear.clone()
    a[:-1] += (1 + sign) * decays[:, None] * driven
    b[:-1] += (1 + sign) * decays[:, None] * e

    nu = z @ driven
    h = net.f(nu)
    y, target = h @ d.T, scales * decays * z
    output, opposite = y - target, sign * y + c @ (linear @ d.T) + target
    current = torch.addmm(w(h), decays * z, driven, alpha=-1)
    crossed, moments = c.T @ current, c.T @ c
    both = 2 * (float(current.square().sum()) + sign * float((crossed * a).sum())) + float((moments * (a @ a.T)).sum())
    loss = factor * (float(output.square().sum()) + float(opposite.square().sum()) + current_weight * both)

    output, opposite = 2 * factor * output, 2 * factor * opposite
    together = output + sign * opposite
    decoder_gradient = h.T @ together + linear.T @ (c.T @ opposite) if "decoders" in parts else None
    if parts <= {"decoders"}:
        return loss, Gradient(h[:0], h[:0], decoder_gradient)
    for residual in (current, crossed, a):
        residual *= 2 * factor * current_weight
    pulled = w.pull_back(torch.cat([a, crossed]))
    pulled_a, pulled_crossed = pulled[: len(a)], pulled[len(a) : -1]  # the last is that of 1, not of z
    # f'(z) g(z) + (sign f'(z) + slope) g(-z) for the errors g before the derivative; half of its first part:
    half = torch.cat([together, sign * c], 1) @ torch.cat([d, pulled_a]) * 0.5
    errors = w.pull_back(current, onto=half).mul_(net.f.derivative_at(nu, h))
    first = 2 * (z.T @ errors)
    if slope:
        first += slope * (z.T @ opposite @ d + sign * pulled_crossed + z.T @ c @ pulled_a)
    encoder_gradient = None
    if "encoders" in parts:
        apart = (1 - sign) * crossed[:-1] - z.T @ c @ a
        encoder_gradient = w.pull_back(first - decays[:, None] * apart).T
    if "recurrent" not in parts:
        return loss, Gradient(h[:0], h[:0], decoder_gradient, encoder_gradient)
    residual = torch.addmm(h, decays * z, e, alpha=-1)
    left = torch.cat([current, sign * crossed, a, first])
    right = torch.cat([2 * residual, b, sign * (c.T @ residual) + moments @ b, e])
    return loss, Gradient(left, right, decoder_gradient, encoder_gradient)
