r"""Several channels in one linear network: the conditions on its modes, and a network that meets them.

Section 3, "Case of multiple channels". When can they be met? The moments $D^\dagger E, S\Gamma, S\Gamma^2, \dots$ need
$D + \mathrm{rank}(D^\dagger E - S)$ dimensions (the Hankel rank of that sequence), so a GI exists for independent
encoders and independent decoders exactly when $n \ge D + \mathrm{rank}(D^\dagger E - S)$: n >= 2 D is always enough, n
= D only if $d_c \cdot e_{c'} = s_c\, \delta_{cc'}$.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from rni.core.errors import InputError
from rni.theory._arrays import columns, per_channel, vector_pair


class ChannelResiduals(NamedTuple):
    """The five sets of conditions, each as a residual that is 0 for a generalizing integrator of rank D.

    >>> e, d = rni.vectors.orthonormal(10, 2, torch.Generator().manual_seed(0))
    >>> found = rni.theory.channel_residuals([0.9, 0.8], e, e, e, d, decays=[0.9, 0.8], scales=[1, 1])
    >>> found.eigenvalue.round(decimals=9).abs().tolist(), found.scale.round(decimals=9).tolist()  # never read
    ([0.0, 0.0], [-0.9, -0.8])
    """

    eigenvalue: Tensor  # sigma_c r_c . l_c - gamma_c, (channels,)
    scale: Tensor  # sigma_c (d_c . l_c) (r_c . e_c) - s_c gamma_c, (channels,)
    encoding: Tensor  # r_c . e_c' off the diagonal, (channels, channels)
    decoding: Tensor  # d_c . l_c' off the diagonal
    mixing: Tensor  # r_c . l_c' off the diagonal


class Factors(NamedTuple):
    r"""$W = L R^\dagger$: left and right (neurons, channels).

    >>> rni.theory.Factors(torch.ones(3, 1), torch.ones(3, 1)).left.shape
    torch.Size([3, 1])
    """

    left: Tensor
    right: Tensor


def channel_residuals(
    singular_values: Any, left: Any, right: Any, encoders: Any, decoders: Any, decays: Any, scales: Any
) -> ChannelResiduals:
    r"""$\sigma_c\, r_c \cdot l_c = \gamma_c$, $\sigma_c (d_c \cdot l_c)(r_c \cdot e_c) = s_c\gamma_c$, and
    $r_c \cdot e_{c'} = d_c \cdot l_{c'} = r_c \cdot l_{c'} = 0$ for $c \ne c'$; $W = \sum_c \sigma_c\, l_c
    r_c^\dagger$.

    singular_values (channels,); left and right (neurons, channels), column c for the mode of channel c.

    >>> e, d = rni.vectors.orthonormal(10, 2, torch.Generator().manual_seed(0))
    >>> found = rni.theory.channel_residuals([0.9, 0.8], e, e, e, e, decays=[0.9, 0.8], scales=[1, 1])
    >>> max(float(each.abs().max()) for each in found) < 1e-12  # W = sum of gamma_c e_c e_c', d = e
    True
    """
    encoders, decoders = vector_pair(encoders, decoders)
    neurons, channels = encoders.shape
    left, right = columns(left, "left", neurons), columns(right, "right", neurons)
    if not left.shape == right.shape == encoders.shape:
        raise InputError(
            f"left, right: shapes {tuple(left.shape)}, {tuple(right.shape)}; allowed: {tuple(encoders.shape)}"
        )
    decays, scales = per_channel(decays, channels, "decays"), per_channel(scales, channels, "scales")
    sigma = per_channel(singular_values, channels, "singular_values")
    reading, writing, recurring = right.T @ encoders, decoders.T @ left, right.T @ left
    return ChannelResiduals(
        sigma * recurring.diagonal() - decays,
        sigma * writing.diagonal() * reading.diagonal() - scales * decays,
        *(table - torch.diag(table.diagonal()) for table in (reading, writing, recurring)),
    )


def multiplexed(encoders: Any, decoders: Any, decays: Any, scales: Any) -> Factors:
    r"""$D^\dagger L = S$, $R^\dagger E = R^\dagger L = \Gamma$: a generalizing integrator $W = L R^\dagger$ of rank D.

    encoders and decoders (neurons, channels), decays and scales (channels,), none of them 0. The network's state is
    $h_t = \sum_c a_c\, \bar y_{c,t}\, l_c$ with $a_c = 1 / (d_c \cdot l_c) = 1 / s_c$.

    With $L = E - N$ the conditions read $D^\dagger N = D^\dagger E - S$, $R^\dagger N = 0$, $R^\dagger E = \Gamma$: N
    of the smallest rank that the first allows, then R from the other two, which needs N independent of E.

    >>> e, d = rni.vectors.independent(20, 3, torch.Generator().manual_seed(0))
    >>> left, right = rni.theory.multiplexed(e, d, decays=[0.9, 0.8, 0.7], scales=[1, 1, 2])
    >>> bool(rni.theory.is_generalizing_integrator(left @ right.T, e, d, [0.9, 0.8, 0.7], [1, 1, 2]))
    True
    """
    encoders, decoders = vector_pair(encoders, decoders)
    neurons, channels = encoders.shape
    decays, scales = per_channel(decays, channels, "decays"), per_channel(scales, channels, "scales")
    for name, vectors in (("encoders", encoders), ("decoders", decoders)):
        rank = int(torch.linalg.matrix_rank(vectors))
        if rank < channels:
            raise InputError(f"{name}: rank {rank}; allowed: {channels}, one independent vector a channel")
    for name, values in (("decays", decays), ("scales", scales)):
        if (values == 0).any():
            raise InputError(f"{name}: {values.tolist()}; allowed: values other than 0")

    mismatch = decoders.T @ encoders - torch.diag(scales)
    outer, values, inner = torch.linalg.svd(mismatch)
    size = torch.linalg.norm(decoders) * torch.linalg.norm(encoders) + scales.abs().max()
    rank = int((values > channels * torch.finfo(torch.float64).eps * size).sum())
    if neurons < channels + rank:
        raise InputError(
            f"encoders, decoders: {neurons} neurons for {channels} channels with rank(D'E - S) = {rank}; "
            f"allowed: at least {channels + rank} neurons, or vectors with d_c . e_c' = s_c for c = c' and 0 otherwise"
        )
    escape = _independent_preimage(outer[:, :rank] * values[:rank], encoders, decoders)
    constraints = torch.cat([encoders, escape], dim=1)
    wanted = torch.cat([torch.diag(decays), torch.zeros(rank, channels, dtype=torch.float64)])
    right = torch.linalg.pinv(constraints).T @ wanted
    return Factors(encoders - escape @ inner[:rank], right)


def _independent_preimage(image: Tensor, encoders: Tensor, decoders: Tensor) -> Tensor:
    r"""The smallest N with $D^\dagger N$ = `image`, moved in the decoders' null space if it depends on the encoders."""
    smallest = torch.linalg.pinv(decoders.T) @ image
    encoding = torch.linalg.qr(encoders).Q
    outside = smallest - encoding @ (encoding.T @ smallest)
    if (torch.linalg.svdvals(outside) > 1e-6 * torch.linalg.norm(smallest)).all():
        return smallest
    unseen = torch.linalg.svd(decoders)[0][:, decoders.shape[1] :]
    # Almost every point of the null space will do, so a fixed draw does.
    draw = torch.randn(unseen.shape[1], image.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return smallest + torch.linalg.matrix_norm(smallest, 2) * unseen @ draw / unseen.shape[1] ** 0.5
