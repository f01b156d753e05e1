r"""All single-channel generalizing integrators that descent from W = 0 can reach.

The formulas are those of the appendix "Generalizing Integrators in the null initialization subspace". Encoder and
decoder span a plane, in which W is the 2 x 2 matrix $\omega$ (see `rni.theory.subspace`). $\omega$ has the eigenvalue
$\gamma$ with the eigenvector u, and the eigenvalue $\lambda$ with the eigenvector v.

The paper writes $u = (1, \alpha)$ and $v = (1, \beta)$. The functions of this module also describe a direction by its
angle, $u = (\cos\theta, \sin\theta)$ with $\alpha = \tan\theta$. The angle includes $\alpha = \infty$ (the special
cases $u_1 = 0$ and $v_1 = 0$ of the paper), and the formulas in terms of the angle remain finite for $d \cdot e = 0$.
"""

from math import cos, inf, sin, sqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rni.core.arrays import as_real_tensor, as_vector_pair, require_shape
from rni.core.errors import InputError


class Plane(NamedTuple):
    r"""The columns of $\sqrt\Sigma$, $\Sigma = \begin{pmatrix} |d|^2 & d\cdot e \\ d\cdot e & |e|^2 \end{pmatrix}$.

    The columns are the decoder and the encoder in the basis $\bar v_1, \bar v_2$. Build a plane with `plane` or
    `plane_of`.

    Attributes
    ----------
    decoder, encoder : Tensor
        (2,).

    Examples
    --------
    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0.5)
    >>> round(space.overlap, 6), round(space.alpha_0, 3), round(space.beta_0, 3)
    (0.5, -3.732, 3.732)
    """

    decoder: Tensor
    encoder: Tensor

    @property
    def overlap(self) -> float:
        r"""$d \cdot e$, which is the only scale at which integrators of rank 2 exist."""
        return float(self.decoder @ self.encoder)

    @property
    def alpha_0(self) -> float:
        r"""$\alpha_0 = -\frac{(\kappa - l_-) r_- + (\kappa + l_-) r_+}{2\, d\cdot e\, (r_+ - r_-)}$, orthogonal to d.

        It is computed as $-(\sqrt\Sigma)_{11} / (\sqrt\Sigma)_{12}$, which is equal and does not cancel. It is infinite
        for d.e = 0.
        """
        return _ratio(-self.decoder[0].item(), self.decoder[1].item())

    @property
    def beta_0(self) -> float:
        r"""$\beta_0 = \frac{(\kappa + l_-) r_- + (\kappa - l_-) r_+}{2\, d\cdot e\, (r_+ - r_-)}$, the direction of e.

        It is computed as $(\sqrt\Sigma)_{22} / (\sqrt\Sigma)_{12}$. It is infinite for d.e = 0.
        """
        return _ratio(self.encoder[1].item(), self.encoder[0].item())

    @property
    def z(self) -> float:
        r"""$Z = \frac{[d\cdot e\, (r_+ - r_-)]^2}{2\kappa^2} = (\sqrt\Sigma)_{12}^2$."""
        return self.encoder[0].item() ** 2


def plane(encoder_norm: float, decoder_norm: float, overlap: float) -> Plane:
    r"""Compute $\sqrt\Sigma = \frac{\Sigma + \delta\, 1}{\sqrt{|d|^2 + |e|^2 + 2\delta}}$,
    $\delta = \sqrt{|d|^2|e|^2 - (d\cdot e)^2}$.

    Parameters
    ----------
    encoder_norm, decoder_norm : float
        $|e|$ and $|d|$, above 0.
    overlap : float
        The dot product $d \cdot e$, at most $|d||e|$ in size.

    Examples
    --------
    >>> space = rni.theory.plane(encoder_norm=2, decoder_norm=1, overlap=0.5)
    >>> round(space.encoder.norm().item(), 6), round(space.decoder.norm().item(), 6)
    (2.0, 1.0)
    """
    for field, norm in (("encoder_norm", encoder_norm), ("decoder_norm", decoder_norm)):
        if not 0 < norm < inf:
            raise InputError(field, norm, "a positive number")
    bound = encoder_norm * decoder_norm
    if not (abs(overlap) <= bound < inf):
        raise InputError("overlap", overlap, f"from {-bound} to {bound}, which is the product of the norms")
    delta = sqrt((bound - overlap) * (bound + overlap))
    root = sqrt(decoder_norm**2 + encoder_norm**2 + 2 * delta)
    decoder = _float64([(decoder_norm**2 + delta) / root, overlap / root])
    return Plane(decoder, _float64([overlap / root, (encoder_norm**2 + delta) / root]))


def plane_of(encoder: Any, decoder: Any) -> Plane:
    r"""Compute $\sqrt\Sigma$ of two vectors: $\Sigma_{ab} = v_a \cdot v_b$ with $v_1 = d$, $v_2 = e$.

    Parameters
    ----------
    encoder, decoder : array
        (neurons,) or (neurons, 1).

    Examples
    --------
    >>> round(rni.theory.plane_of([1.0, 0.0, 0.0], [0.6, 0.8, 0.0]).overlap, 6)
    0.6
    """
    encoders, decoders = as_vector_pair(encoder, decoder)
    require_shape("encoder", encoders, "neurons", 1)
    encoder, decoder = encoders.detach()[:, 0], decoders.detach()[:, 0]
    norms = encoder.norm().item(), decoder.norm().item()
    bound = norms[0] * norms[1]
    overlap = torch.dot(encoder, decoder).item()
    return plane(*norms, min(max(overlap, -bound), bound))  # rounding may have moved the overlap beyond the bound


def gamma_matrix(decay: float, other: float, alpha: float, beta: float) -> Tensor:
    r"""Compute $\Gamma(\lambda, \alpha, \beta) = \frac{1}{\alpha - \beta} \begin{pmatrix}
    \alpha\lambda - \beta\gamma & \gamma - \lambda \\
    \alpha\beta(\lambda - \gamma) & \alpha\gamma - \beta\lambda \end{pmatrix}$.

    Parameters
    ----------
    decay, other : float
        The eigenvalue $\gamma$ along $(1, \alpha)$ and the eigenvalue $\lambda$ along $(1, \beta)$.
    alpha, beta : float
        The directions of the eigenvectors.

    Returns
    -------
    Tensor
        (2, 2).

    Examples
    --------
    >>> omega = rni.theory.gamma_matrix(decay=0.9, other=0.5, alpha=1.0, beta=-1.0)
    >>> torch.linalg.eigvals(omega).real.sort().values.round(decimals=6).tolist()
    [0.5, 0.9]
    """
    rows = [
        [alpha * other - beta * decay, decay - other],
        [alpha * beta * (other - decay), alpha * decay - beta * other],
    ]
    return _float64(rows) / (alpha - beta)


def g_1(space: Plane, alpha: float, beta: float) -> float:
    r"""Compute $g_1 = Z \frac{(\alpha - \alpha_0)(\beta - \beta_0)}{\beta - \alpha}$, the scale of a rank-1 integrator.

    Parameters
    ----------
    space : Plane
        The plane of encoder and decoder.
    alpha, beta : float
        The directions $(1, \alpha)$ of u and $(1, \beta)$ of v.

    Examples
    --------
    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0.5)
    >>> round(rni.theory.g_1(space, 1.0, -1.0) + rni.theory.g_2(space, 1.0, -1.0), 6)  # d.e
    0.5
    """
    (d1, d2), (e1, e2) = space.decoder.tolist(), space.encoder.tolist()
    return (d1 + d2 * alpha) * (e1 * beta - e2) / (beta - alpha)


def g_2(space: Plane, alpha: float, beta: float) -> float:
    r"""Compute $g_2 = Z \frac{(\alpha - \beta_0)(\beta - \alpha_0)}{\alpha - \beta}$, for which
    $g_1 + g_2 = d \cdot e$.

    Parameters
    ----------
    space : Plane
        The plane of encoder and decoder.
    alpha, beta : float
        The directions $(1, \alpha)$ of u and $(1, \beta)$ of v.

    Examples
    --------
    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0.5)
    >>> round(rni.theory.g_2(space, 1.0, -1.0), 6), round(rni.theory.g_1(space, -1.0, 1.0), 6)
    (-0.25, -0.25)
    """
    return g_1(space, beta, alpha)


def beta_of_scale(space: Plane, scale: float, alpha: float) -> float:
    r"""Compute $\beta_s(\alpha) = \frac{Z(\alpha - \alpha_0)\beta_0 - \alpha s}{Z(\alpha - \alpha_0) - s}$.

    It is the solution of $g_1(\alpha, \beta_s) = s$. It is infinite for $v_1 = 0$.

    Parameters
    ----------
    space : Plane
        The plane of encoder and decoder.
    scale : float
        s.
    alpha : float
        The direction $(1, \alpha)$ of u.

    Examples
    --------
    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0.5)
    >>> beta = rni.theory.beta_of_scale(space, scale=2.0, alpha=1.0)
    >>> round(rni.theory.g_1(space, 1.0, beta), 6)
    2.0
    """
    (d1, d2), (e1, e2) = space.decoder.tolist(), space.encoder.tolist()
    reading = d1 + d2 * alpha
    return _ratio(reading * e2 - alpha * scale, reading * e1 - scale)


def rank_one(space: Plane, decay: float, scale: float, angle: Any) -> Tensor:
    r"""Compute $\omega = \gamma\, u w^\dagger / (w \cdot u)$, $u = (\cos\theta, \sin\theta)$,
    $w \perp (d \cdot u) e - s u$.

    This is the integrator of scale s whose state lies along u, $\Gamma(0, \tan\theta, \beta_s(\tan\theta))$. For s
    other than 0 and d.e it diverges if u is along e or orthogonal to d.

    Parameters
    ----------
    space : Plane
        The plane of encoder and decoder.
    decay, scale : float
        $\gamma$ and s.
    angle : float or array
        $\theta$, of any shape.

    Returns
    -------
    Tensor
        (2, 2), or (..., 2, 2) for angles (...,).

    Examples
    --------
    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0.5)
    >>> omega = rni.theory.rank_one(space, decay=0.9, scale=2.0, angle=0.7)
    >>> bool(rni.theory.is_generalizing_integrator(omega, space.encoder, space.decoder, 0.9, 2.0))
    True
    """
    angle = as_real_tensor("angle", angle).double()
    state = torch.stack([angle.cos(), angle.sin()], dim=-1)
    reading = (state @ space.decoder)[..., None]
    reader = _quarter_turn(reading * space.encoder - scale * state)
    gain = reading[..., 0] * (state @ _quarter_turn(space.encoder))
    return decay * state[..., :, None] * reader[..., None, :] / gain[..., None, None]


def unread_mode(space: Plane, decay: float, other: float, angle: float) -> Tensor:
    r"""Compute a member of $\mathcal{M}_\alpha = \{\Gamma(\lambda, \alpha, \alpha_0)\}$, of scale d.e.

    The mode v is orthogonal to d, so that the output never reads it.

    Parameters
    ----------
    space : Plane
        The plane of encoder and decoder.
    decay, other : float
        The eigenvalues $\gamma$ and $\lambda$.
    angle : float
        The angle of u, the eigenvector of the decay.

    Returns
    -------
    Tensor
        (2, 2).

    Examples
    --------
    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0.5)
    >>> omega = rni.theory.unread_mode(space, decay=0.9, other=0.3, angle=0.7)
    >>> bool(rni.theory.is_generalizing_integrator(omega, space.encoder, space.decoder, 0.9, 0.5))
    True
    """
    return _from_eigenvectors(_direction(angle), _quarter_turn(space.decoder), decay, other)


def undriven_mode(space: Plane, decay: float, other: float, angle: float) -> Tensor:
    r"""Compute a member of $\mathcal{M}_\beta = \{\Gamma(\lambda, \beta_0, \beta)\}$, of scale d.e.

    The encoder is along u, so that the input never drives the mode v.

    Parameters
    ----------
    space : Plane
        The plane of encoder and decoder.
    decay, other : float
        The eigenvalues $\gamma$ and $\lambda$.
    angle : float
        The angle of v, the eigenvector of $\lambda$.

    Returns
    -------
    Tensor
        (2, 2).

    Examples
    --------
    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0.5)
    >>> omega = rni.theory.undriven_mode(space, decay=0.9, other=0.3, angle=0.7)
    >>> bool(rni.theory.is_generalizing_integrator(omega, space.encoder, space.decoder, 0.9, 0.5))
    True
    """
    return _from_eigenvectors(space.encoder, _direction(angle), decay, other)


def intersection(space: Plane, decay: float, other: float) -> Tensor:
    r"""Compute $\mathcal{M}_\alpha \cap \mathcal{M}_\beta = \{\Gamma(\lambda, \beta_0, \alpha_0)\}$, of scale d.e.

    The mode of $\lambda$ is neither driven nor read. For d.e = 0 the two eigenvectors coincide, and such a matrix
    exists only for $\lambda = \gamma$.

    Parameters
    ----------
    space : Plane
        The plane of encoder and decoder.
    decay, other : float
        The eigenvalues $\gamma$ and $\lambda$.

    Returns
    -------
    Tensor
        (2, 2).

    Examples
    --------
    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0.5)
    >>> omega = rni.theory.intersection(space, decay=0.9, other=0.3)
    >>> bool(rni.theory.is_generalizing_integrator(omega, space.encoder, space.decoder, 0.9, 0.5))
    True
    """
    return _from_eigenvectors(space.encoder, _quarter_turn(space.decoder), decay, other)


def vertical_state(space: Plane, decay: float, scale: float) -> Tensor:
    r"""Compute $\omega = \begin{pmatrix} \lambda & 0 \\ (\lambda - \gamma) v & \gamma \end{pmatrix}$ with
    $\lambda = 0$.

    This is the case $u_1 = 0$ of the paper, the limit $\alpha \to \infty$ of the curve of one scale. The scale
    determines v by $g_1 = e_1 (e_2 - v e_1)$, with e in the basis of the plane.

    Parameters
    ----------
    space : Plane
        The plane of encoder and decoder. Encoder and decoder may not be orthogonal.
    decay, scale : float
        $\gamma$ and s.

    Returns
    -------
    Tensor
        (2, 2).

    Examples
    --------
    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0.5)
    >>> omega = rni.theory.vertical_state(space, decay=0.9, scale=2.0)
    >>> bool(rni.theory.is_generalizing_integrator(omega, space.encoder, space.decoder, 0.9, 2.0))
    True
    """
    _require_overlap(space)
    e1, e2 = space.encoder.tolist()
    slope = (e2 - scale / e1) / e1
    return _float64([[0.0, 0.0], [-decay * slope, decay]])


def vertical_null_mode(space: Plane, decay: float, scale: float) -> Tensor:
    r"""Compute $\omega = \begin{pmatrix} \gamma & 0 \\ (\gamma - \lambda) u & \lambda \end{pmatrix}$ with
    $\lambda = 0$.

    This is the case $v_1 = 0$ of the paper, the limit $\beta \to \infty$ of the curve of one scale. The scale
    determines u by $g_1 = e_1 (d_1 + u d_2)$.

    Parameters
    ----------
    space : Plane
        The plane of encoder and decoder. Encoder and decoder may not be orthogonal.
    decay, scale : float
        $\gamma$ and s.

    Returns
    -------
    Tensor
        (2, 2).

    Examples
    --------
    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0.5)
    >>> omega = rni.theory.vertical_null_mode(space, decay=0.9, scale=2.0)
    >>> bool(rni.theory.is_generalizing_integrator(omega, space.encoder, space.decoder, 0.9, 2.0))
    True
    """
    _require_overlap(space)
    d1, d2 = space.decoder.tolist()
    slope = (scale / space.encoder[0].item() - d1) / d2
    return _float64([[decay, 0.0], [decay * slope, 0.0]])


def singular_angles(space: Plane) -> tuple[float, float]:
    r"""Compute the angles of $\alpha = \beta_0$ (along e) and $\alpha = \alpha_0$ (orthogonal to d), in $[0, \pi)$.

    The rank-1 integrators of a scale other than 0 and d.e lie on two branches between these angles.

    Parameters
    ----------
    space : Plane
        The plane of encoder and decoder.

    Examples
    --------
    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0)
    >>> [round(angle, 4) for angle in rni.theory.singular_angles(space)]
    [1.5708, 1.5708]
    """
    e, across_d = space.encoder, _quarter_turn(space.decoder)
    return torch.atan2(e[1], e[0]).item() % torch.pi, torch.atan2(across_d[1], across_d[0]).item() % torch.pi


def _from_eigenvectors(first: Tensor, second: Tensor, decay: float, other: float) -> Tensor:
    r"""Compute $P \Lambda P^{-1} = \lambda 1 + (\gamma - \lambda)\, u w^\dagger / (w \cdot u)$ with $w \perp v$: (2,
    2).
    """
    reader = _quarter_turn(second)
    projector = torch.outer(first, reader) / (reader @ first)
    return other * torch.eye(2, dtype=torch.float64) + (decay - other) * projector


def _direction(angle: float) -> Tensor:
    return _float64([cos(angle), sin(angle)])


def _quarter_turn(vector: Tensor) -> Tensor:
    return torch.stack([-vector[..., 1], vector[..., 0]], dim=-1)


def _float64(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else inf * numerator


def _require_overlap(space: Plane) -> None:
    if space.overlap == 0:
        allowed = "a number other than 0, because this family has only the scale 0 for d.e = 0"
        raise InputError("overlap", space.overlap, allowed)
