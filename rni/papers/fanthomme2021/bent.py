r"""Exact ReLU integrators whose currents are not linear in the integrals, nor any other function of them.

The currents are $\nu_t = Lz_t + b\,c_t$ with the integrals $z_t$ and one additional coordinate,

$c_{t+1} = k \cdot f(\nu_t) = \frac12 \sum_g q_g\,|u_g \cdot z_t + \beta_g c_t|$.

It changes the current of every neuron, but neither the outputs nor the integrals depend on it: see docs/capacity.md.
With populations $(l_j, b_j) = \sigma_j\rho_j (u_g, \beta_g)$ and $\sum_{j \in g} \rho_j d_j = 0$ this requires

- $D^\dagger L = 2S\Gamma$ and $D^\dagger b = 0$,
- $M^\dagger[E, L, b, R] = [1, 2\Gamma, 0, 0]$,
- $k^\dagger[E, L, b, R] = [0, 0, 0, q]$,

where column g of R has the $\rho_j$ of population g. $W = LM^\dagger + bk^\dagger$ has rank D + 1.
"""

import torch

from rni import vectors
from rni.core.errors import InputError
from rni.core.rng import stream
from rni.designs.axes import split, turned_axes
from rni.designs.currents import least_norm
from rni.designs.relu import signed_strengths
from rni.networks.network import Network
from rni.tasks.integration import Integration
from rni.weights import LowRank


def bent(task: Integration, neurons: int = 300, bend: float = 0.5, seed: int = 0) -> Network:
    r"""Design an exact ReLU integrator whose currents are not linear in the integrals.

    It has D + 1 populations. With $|\beta_g| \le 1$ and $q_g = 2\,\mathrm{bend}/(D+1)$ the additional coordinate c
    stays bounded.

    Parameters
    ----------
    task : Integration
    neurons : int
    bend : float
        How strongly c follows the integrals, from 0 (linear currents) up to, but not including, 1.
    seed : int

    Raises
    ------
    InputError
        If `bend` is outside of this range, or if there are too few neurons.
    """
    if not 0 <= bend < 1:
        raise InputError("bend", bend, "a number from 0 up to, but not including, 1")
    channels, generator = task.channels, stream(seed, "design")
    e, d = vectors.independent(neurons, channels, stream(seed, "vectors"))
    decays, gains = d.new_tensor(task.decays), d.new_tensor(task.decays) * d.new_tensor(task.scales)
    axes = torch.cat([torch.eye(channels).to(d), torch.full((1, channels), channels**-0.5).to(d)])
    drawn = torch.rand(neurons, channels + 1, generator=generator, dtype=d.dtype)
    own = split(d, (d @ axes.T).abs() + 0.1 * d.norm(dim=1, keepdim=True) * drawn, generator)
    signed = None if own is None else signed_strengths(d, (d * axes[own]).sum(1), own, channels + 1)
    turned = None if own is None or signed is None else turned_axes(d, signed, axes, own)
    if own is None or signed is None or turned is None:
        least = (channels + 1) ** 2
        raise InputError("neurons", neurons, f"more, at least {least} for {channels} channels and a bend")
    w = d.new_zeros(channels + 1, channels).index_add_(0, own, signed[:, None] * d)
    beta = torch.linalg.svd(w.T).Vh[-1]  # sum_g w_g beta_g = 0
    left = signed[:, None] * turned[own] * gains
    extra = signed * (beta / beta.abs().max())[own]
    even = d.new_zeros(neurons, channels + 1)
    even[torch.arange(neurons), own] = signed.abs()
    conditions = torch.cat([e, left, extra[:, None], even], 1)
    integrals = torch.cat([torch.eye(channels).to(d), 2 * torch.diag(decays), d.new_zeros(channels + 2, channels)])
    bending = torch.cat([d.new_zeros(2 * channels + 1, 1), d.new_full((channels + 1, 1), 2 * bend / (channels + 1))])
    right = least_norm(conditions, torch.cat([integrals, bending], 1))
    if right is None:
        raise InputError("neurons", neurons, "more, so that the vectors are independent")
    return Network(task, e, d, LowRank(torch.cat([left, extra[:, None]], 1), right), "relu")
