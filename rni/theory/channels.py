r"""Linear networks with several channels: the conditions on the modes, and a network that satisfies them.

The formulas are those of section 3, "Case of multiple channels". The moments $D^\dagger E, S\Gamma, S\Gamma^2, \dots$
need $D + \mathrm{rank}(D^\dagger E - S)$ dimensions, which is the Hankel rank of this sequence. For independent
encoders and independent decoders a generalizing integrator therefore exists if and only if
$n \ge D + \mathrm{rank}(D^\dagger E - S)$. This always holds for n >= 2 D, and for n = D only if
$d_c \cdot e_{c'} = s_c\, \delta_{cc'}$.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from rni.core.arrays import as_columns, as_row, as_vector_pair, require_independent_columns, require_shape
from rni.core.errors import InputError


class ChannelResiduals(NamedTuple):
    r"""Residuals of the five sets of conditions. All are 0 for a generalizing integrator of rank D.

    Attributes
    ----------
    eigenvalue : Tensor
        $\sigma_c\, r_c \cdot l_c - \gamma_c$, (channels,).
    scale : Tensor
        $\sigma_c (d_c \cdot l_c)(r_c \cdot e_c) - s_c\gamma_c$, (channels,).
    encoding, decoding, mixing : Tensor
        $r_c \cdot e_{c'}$, $d_c \cdot l_{c'}$ and $r_c \cdot l_{c'}$ off the diagonal, (channels, channels).

    Examples
    --------
    >>> e, d = rni.vectors.orthonormal(10, 2, torch.Generator().manual_seed(0))
    >>> residuals = rni.theory.channel_residuals([0.9, 0.8], e, e, e, d, decays=[0.9, 0.8], scales=[1, 1])
    >>> residuals.eigenvalue.round(decimals=9).abs().tolist()
    [0.0, 0.0]
    >>> residuals.scale.round(decimals=9).tolist()  # the decoders do not read the modes
    [-0.9, -0.8]
    """

    eigenvalue: Tensor
    scale: Tensor
    encoding: Tensor
    decoding: Tensor
    mixing: Tensor


class Factors(NamedTuple):
    r"""The factors of $W = L R^\dagger$, both (neurons, channels).

    Examples
    --------
    >>> rni.theory.Factors(torch.ones(3, 1), torch.ones(3, 1)).left.shape
    torch.Size([3, 1])
    """

    left: Tensor
    right: Tensor


def channel_residuals(
    singular_values: Any, left: Any, right: Any, encoders: Any, decoders: Any, decays: Any, scales: Any
) -> ChannelResiduals:
    r"""Compute the residuals of $\sigma_c\, r_c \cdot l_c = \gamma_c$,
    $\sigma_c (d_c \cdot l_c)(r_c \cdot e_c) = s_c\gamma_c$ and
    $r_c \cdot e_{c'} = d_c \cdot l_{c'} = r_c \cdot l_{c'} = 0$ for $c \ne c'$.

    The network is $W = \sum_c \sigma_c\, l_c r_c^\dagger$.

    Parameters
    ----------
    singular_values : array
        $\sigma$, (channels,).
    left, right : array
        l and r, (neurons, channels). Column c belongs to the mode of channel c.
    encoders, decoders : array
        (neurons, channels).
    decays, scales : array or float
        (channels,), or one number for all channels.

    Examples
    --------
    >>> e, d = rni.vectors.orthonormal(10, 2, torch.Generator().manual_seed(0))
    >>> residuals = rni.theory.channel_residuals([0.9, 0.8], e, e, e, e, decays=[0.9, 0.8], scales=[1, 1])
    >>> max(float(residual.abs().max()) for residual in residuals) < 1e-12  # W = sum of gamma_c e_c e_c', d = e
    True
    """
    encoders, decoders = as_vector_pair(encoders, decoders)
    channels = encoders.shape[1]
    left, right = as_columns("left", left), as_columns("right", right)
    require_shape("left", left, *encoders.shape)
    require_shape("right", right, *encoders.shape)
    decays, scales = as_row("decays", decays, channels), as_row("scales", scales, channels)
    sigma = as_row("singular_values", singular_values, channels)

    encoding, decoding, mixing = right.T @ encoders, decoders.T @ left, right.T @ left
    return ChannelResiduals(
        sigma * mixing.diagonal() - decays,
        sigma * decoding.diagonal() * encoding.diagonal() - scales * decays,
        *(table - torch.diag(table.diagonal()) for table in (encoding, decoding, mixing)),
    )


def multiplexed(encoders: Any, decoders: Any, decays: Any, scales: Any) -> Factors:
    r"""Construct a generalizing integrator $W = L R^\dagger$ of rank D: $D^\dagger L = S$,
    $R^\dagger E = R^\dagger L = \Gamma$.

    The state of the network is $h_t = \sum_c a_c\, \bar y_{c,t}\, l_c$ with $a_c = 1 / (d_c \cdot l_c) = 1 / s_c$.

    With $L = E - N$ the conditions become $D^\dagger N = D^\dagger E - S$, $R^\dagger N = 0$ and
    $R^\dagger E = \Gamma$. N has the smallest rank that the first condition allows. R follows from the other two
    conditions, which require that the columns of N and E are independent.

    Parameters
    ----------
    encoders, decoders : array
        (neurons, channels), with independent columns.
    decays, scales : array or float
        (channels,), or one number for all channels. None of them may be 0.

    Returns
    -------
    Factors
        L and R, (neurons, channels).

    Raises
    ------
    InputError
        If vectors depend on each other, if a decay or a scale is 0, or if there are too few neurons.

    Examples
    --------
    >>> e, d = rni.vectors.independent(20, 3, torch.Generator().manual_seed(0))
    >>> left, right = rni.theory.multiplexed(e, d, decays=[0.9, 0.8, 0.7], scales=[1, 1, 2])
    >>> bool(rni.theory.is_generalizing_integrator(left @ right.T, e, d, [0.9, 0.8, 0.7], [1, 1, 2]))
    True
    """
    encoders, decoders = as_vector_pair(encoders, decoders)
    neurons, channels = encoders.shape
    decays, scales = as_row("decays", decays, channels), as_row("scales", scales, channels)
    require_independent_columns("encoders", encoders)
    require_independent_columns("decoders", decoders)
    for field, values in (("decays", decays), ("scales", scales)):
        if (values == 0).any():
            raise InputError(field, values.tolist(), "values other than 0")

    # N = N_1 N_2', of the rank of D'E - S
    mismatch = decoders.T @ encoders - torch.diag(scales)
    outer, values, inner = torch.linalg.svd(mismatch)
    size = torch.linalg.norm(decoders) * torch.linalg.norm(encoders) + scales.abs().max()
    rank = int((values > channels * torch.finfo(torch.float64).eps * size).sum())
    if neurons < channels + rank:
        raise InputError(
            "encoders",
            neurons,
            f"at least {channels + rank} neurons, or vectors with d_c . e_c' = s_c for c = c' and 0 otherwise",
            problem=f"{neurons} neurons for {channels} channels with rank(D'E - S) = {rank}",
        )
    escape = _independent_preimage(outer[:, :rank] * values[:rank], encoders, decoders)

    # R'E = Gamma and R'N_1 = 0
    constraints = torch.cat([encoders, escape], dim=1)
    wanted = torch.cat([torch.diag(decays), torch.zeros(rank, channels, dtype=torch.float64)])
    right = torch.linalg.pinv(constraints).T @ wanted
    return Factors(encoders - escape @ inner[:rank], right)


def _independent_preimage(image: Tensor, encoders: Tensor, decoders: Tensor) -> Tensor:
    r"""Find an N with $D^\dagger N$ = `image` that is independent of the encoders: the smallest one, if possible."""
    smallest = torch.linalg.pinv(decoders.T) @ image
    encoding = torch.linalg.qr(encoders).Q
    outside = smallest - encoding @ (encoding.T @ smallest)
    if (torch.linalg.svdvals(outside) > 1e-6 * torch.linalg.norm(smallest)).all():
        return smallest
    # N may be moved in the null space of the decoders. Almost every point of this space works, so a fixed draw does.
    unseen = torch.linalg.svd(decoders)[0][:, decoders.shape[1] :]
    draw = torch.randn(unseen.shape[1], image.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return smallest + torch.linalg.matrix_norm(smallest, 2) * unseen @ draw / unseen.shape[1] ** 0.5
