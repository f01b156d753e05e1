r"""All single-channel generalizing integrators that descent from W = 0 can reach.

Appendix "Generalizing Integrators in the null initialization subspace". Encoder and decoder span a plane; in it W is
the 2 x 2 matrix $\omega$ (see `subspace`), with one eigenvalue $\gamma$ of eigenvector u and one eigenvalue $\lambda$
of eigenvector v. The paper writes $u = (1, \alpha)$, $v = (1, \beta)$. Here a direction is also given by its angle, $u
= (\cos\theta, \sin\theta)$ with $\alpha = \tan\theta$, which reaches $\alpha = \infty$ (the paper's special cases $u_1
= 0$, $v_1 = 0$) and stays finite when $d \cdot e = 0$.
"""

from math import cos, sin, sqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rni.core.errors import InputError
from rni.theory._arrays import columns, matrix, vector_pair


class Plane(NamedTuple):
    r"""The columns of $\sqrt\Sigma$, $\Sigma = \begin{pmatrix} |d|^2 & d\cdot e \\ d\cdot e & |e|^2 \end{pmatrix}$:
    decoder (2,) and encoder (2,) in the basis $\bar v_1, \bar v_2$. Build it with `plane` or `plane_of`.

    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0.5)
    >>> round(space.overlap, 6), round(space.alpha_0, 3), round(space.beta_0, 3)
    (0.5, -3.732, 3.732)
    """

    decoder: Tensor
    encoder: Tensor

    @property
    def overlap(self) -> float:
        r"""$d \cdot e$, the only scale at which rank-2 integrators exist."""
        return float(self.decoder @ self.encoder)

    @property
    def alpha_0(self) -> float:
        r"""$\alpha_0 = -\frac{(\kappa - l_-) r_- + (\kappa + l_-) r_+}{2\, d\cdot e\, (r_+ - r_-)}$: orthogonal to d.

        Computed as $-(\sqrt\Sigma)_{11} / (\sqrt\Sigma)_{12}$, equal and free of cancellation; infinite for d.e = 0.
        """
        return _ratio(-self.decoder[0].item(), self.decoder[1].item())

    @property
    def beta_0(self) -> float:
        r"""$\beta_0 = \frac{(\kappa + l_-) r_- + (\kappa - l_-) r_+}{2\, d\cdot e\, (r_+ - r_-)}$: the direction of e.

        Computed as $(\sqrt\Sigma)_{22} / (\sqrt\Sigma)_{12}$; infinite for d.e = 0.
        """
        return _ratio(self.encoder[1].item(), self.encoder[0].item())

    @property
    def z(self) -> float:
        r"""$Z = \frac{[d\cdot e\, (r_+ - r_-)]^2}{2\kappa^2} = (\sqrt\Sigma)_{12}^2$."""
        return self.encoder[0].item() ** 2


def plane(encoder_norm: float, decoder_norm: float, overlap: float) -> Plane:
    r"""$\sqrt\Sigma = \frac{\Sigma + \delta\, 1}{\sqrt{|d|^2 + |e|^2 + 2\delta}}$,
    $\delta = \sqrt{|d|^2|e|^2 - (d\cdot e)^2}$.

    `overlap` is the dot product d.e, at most |d||e| in size.

    >>> space = rni.theory.plane(encoder_norm=2, decoder_norm=1, overlap=0.5)
    >>> round(space.encoder.norm().item(), 6), round(space.decoder.norm().item(), 6)
    (2.0, 1.0)
    """
    bound = encoder_norm * decoder_norm
    if not (encoder_norm > 0 and decoder_norm > 0 and abs(overlap) <= bound < float("inf")):
        raise InputError(
            f"overlap: {overlap} for norms {encoder_norm} and {decoder_norm}; "
            f"allowed: positive norms, |overlap| <= {bound}"
        )
    delta = sqrt((bound - overlap) * (bound + overlap))
    root = sqrt(decoder_norm**2 + encoder_norm**2 + 2 * delta)
    decoder = matrix([(decoder_norm**2 + delta) / root, overlap / root])
    return Plane(decoder, matrix([overlap / root, (encoder_norm**2 + delta) / root]))


def plane_of(encoder: Any, decoder: Any) -> Plane:
    r"""$\Sigma_{ab} = v_a \cdot v_b$ with $v_1 = d$, $v_2 = e$, for vectors (neurons,) or (neurons, 1).

    >>> round(rni.theory.plane_of([1.0, 0.0, 0.0], [0.6, 0.8, 0.0]).overlap, 6)
    0.6
    """
    if (channels := columns(encoder, "encoder").shape[1]) != 1:
        raise InputError(f"encoder: {channels} channels; allowed: 1")
    encoder, decoder = (vector.detach()[:, 0] for vector in vector_pair(encoder, decoder))
    norms = encoder.norm().item(), decoder.norm().item()
    overlap = torch.dot(encoder, decoder).item()
    bound = norms[0] * norms[1]
    return plane(*norms, min(max(overlap, -bound), bound))


def gamma_matrix(decay: float, other: float, alpha: float, beta: float) -> Tensor:
    r"""$\Gamma(\lambda, \alpha, \beta) = \frac{1}{\alpha - \beta} \begin{pmatrix}
    \alpha\lambda - \beta\gamma & \gamma - \lambda \\
    \alpha\beta(\lambda - \gamma) & \alpha\gamma - \beta\lambda \end{pmatrix}$.

    (2, 2), eigenvalue $\gamma$ = `decay` along $(1, \alpha)$ and $\lambda$ = `other` along $(1, \beta)$.

    >>> omega = rni.theory.gamma_matrix(decay=0.9, other=0.5, alpha=1.0, beta=-1.0)
    >>> torch.linalg.eigvals(omega).real.sort().values.round(decimals=6).tolist()
    [0.5, 0.9]
    """
    rows = [
        [alpha * other - beta * decay, decay - other],
        [alpha * beta * (other - decay), alpha * decay - beta * other],
    ]
    return matrix(rows) / (alpha - beta)


def g_1(space: Plane, alpha: float, beta: float) -> float:
    r"""$g_1 = Z \frac{(\alpha - \alpha_0)(\beta - \beta_0)}{\beta - \alpha}$, the scale of a rank-1 integrator.

    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0.5)
    >>> round(rni.theory.g_1(space, 1.0, -1.0) + rni.theory.g_2(space, 1.0, -1.0), 6)  # d.e
    0.5
    """
    (d1, d2), (e1, e2) = space.decoder.tolist(), space.encoder.tolist()
    return (d1 + d2 * alpha) * (e1 * beta - e2) / (beta - alpha)


def g_2(space: Plane, alpha: float, beta: float) -> float:
    r"""$g_2 = Z \frac{(\alpha - \beta_0)(\beta - \alpha_0)}{\alpha - \beta}$; $g_1 + g_2 = d \cdot e$.

    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0.5)
    >>> round(rni.theory.g_2(space, 1.0, -1.0), 6), round(rni.theory.g_1(space, -1.0, 1.0), 6)
    (-0.25, -0.25)
    """
    return g_1(space, beta, alpha)


def beta_of_scale(space: Plane, scale: float, alpha: float) -> float:
    r"""$\beta_s(\alpha) = \frac{Z(\alpha - \alpha_0)\beta_0 - \alpha s}{Z(\alpha - \alpha_0) - s}$.

    Where $g_1(\alpha, \beta_s) = s$; infinite for $v_1 = 0$.

    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0.5)
    >>> beta = rni.theory.beta_of_scale(space, scale=2.0, alpha=1.0)
    >>> round(rni.theory.g_1(space, 1.0, beta), 6)
    2.0
    """
    (d1, d2), (e1, e2) = space.decoder.tolist(), space.encoder.tolist()
    reading = d1 + d2 * alpha
    return _ratio(reading * e2 - alpha * scale, reading * e1 - scale)


def rank_one(space: Plane, decay: float, scale: float, angle: Any) -> Tensor:
    r"""$\omega = \gamma\, u w^\dagger / (w \cdot u)$, $u = (\cos\theta, \sin\theta)$, $w \perp (d \cdot u) e - s u$.

    The integrator of scale s whose state lies along u: $\Gamma(0, \tan\theta, \beta_s(\tan\theta))$. (2, 2), or
    (..., 2, 2) for angles (...,). It exists unless u is along e or orthogonal to d, where it diverges (for s other than
    0 and d.e).

    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0.5)
    >>> omega = rni.theory.rank_one(space, decay=0.9, scale=2.0, angle=0.7)
    >>> bool(rni.theory.is_generalizing_integrator(omega, space.encoder, space.decoder, 0.9, 2.0))
    True
    """
    angle = matrix(angle)
    state = torch.stack([angle.cos(), angle.sin()], dim=-1)
    reading = (state @ space.decoder)[..., None]
    reader = _quarter_turn(reading * space.encoder - scale * state)
    gain = reading[..., 0] * (state @ _quarter_turn(space.encoder))
    return decay * state[..., :, None] * reader[..., None, :] / gain[..., None, None]


def unread_mode(space: Plane, decay: float, other: float, angle: float) -> Tensor:
    r"""$\mathcal{M}_\alpha = \{\Gamma(\lambda, \alpha, \alpha_0)\}$, scale d.e: v, orthogonal to d, is never read.

    (2, 2); `angle` is that of u, the eigenvector of the decay.

    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0.5)
    >>> omega = rni.theory.unread_mode(space, decay=0.9, other=0.3, angle=0.7)
    >>> bool(rni.theory.is_generalizing_integrator(omega, space.encoder, space.decoder, 0.9, 0.5))
    True
    """
    return _from_eigenvectors(_direction(angle), _quarter_turn(space.decoder), decay, other)


def undriven_mode(space: Plane, decay: float, other: float, angle: float) -> Tensor:
    r"""$\mathcal{M}_\beta = \{\Gamma(\lambda, \beta_0, \beta)\}$, scale d.e: e is along u, so the input never drives v.

    (2, 2); `angle` is that of v, the eigenvector of $\lambda$.

    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0.5)
    >>> omega = rni.theory.undriven_mode(space, decay=0.9, other=0.3, angle=0.7)
    >>> bool(rni.theory.is_generalizing_integrator(omega, space.encoder, space.decoder, 0.9, 0.5))
    True
    """
    return _from_eigenvectors(space.encoder, _direction(angle), decay, other)


def intersection(space: Plane, decay: float, other: float) -> Tensor:
    r"""$\mathcal{M}_\alpha \cap \mathcal{M}_\beta = \{\Gamma(\lambda, \beta_0, \alpha_0)\}$.

    (2, 2), scale d.e: the mode of $\lambda$ is neither driven nor read. For d.e = 0 the two eigenvectors coincide and
    there is no such matrix but for $\lambda = \gamma$.

    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0.5)
    >>> omega = rni.theory.intersection(space, decay=0.9, other=0.3)
    >>> bool(rni.theory.is_generalizing_integrator(omega, space.encoder, space.decoder, 0.9, 0.5))
    True
    """
    return _from_eigenvectors(space.encoder, _quarter_turn(space.decoder), decay, other)


def vertical_state(space: Plane, decay: float, scale: float) -> Tensor:
    r"""$\omega = \begin{pmatrix} \lambda & 0 \\ (\lambda - \gamma) v & \gamma \end{pmatrix}$ with $\lambda = 0$.

    The paper's case $u_1 = 0$, v fixed by the scale: (2, 2), the limit $\alpha \to \infty$ of the iso-scale curve:
    $g_1 = e_1 (e_2 - v e_1)$ with e in the plane's basis.

    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0.5)
    >>> omega = rni.theory.vertical_state(space, decay=0.9, scale=2.0)
    >>> bool(rni.theory.is_generalizing_integrator(omega, space.encoder, space.decoder, 0.9, 2.0))
    True
    """
    e1, e2 = space.encoder.tolist()
    _refuse_orthogonal(space)
    slope = (e2 - scale / e1) / e1
    return matrix([[0.0, 0.0], [-decay * slope, decay]])


def vertical_null_mode(space: Plane, decay: float, scale: float) -> Tensor:
    r"""$\omega = \begin{pmatrix} \gamma & 0 \\ (\gamma - \lambda) u & \lambda \end{pmatrix}$ with $\lambda = 0$.

    The paper's case $v_1 = 0$, u fixed by the scale: (2, 2), the limit $\beta \to \infty$ of the iso-scale curve: $g_1
    = e_1 (d_1 + u d_2)$.

    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0.5)
    >>> omega = rni.theory.vertical_null_mode(space, decay=0.9, scale=2.0)
    >>> bool(rni.theory.is_generalizing_integrator(omega, space.encoder, space.decoder, 0.9, 2.0))
    True
    """
    d1, d2 = space.decoder.tolist()
    _refuse_orthogonal(space)
    slope = (scale / space.encoder[0].item() - d1) / d2
    return matrix([[decay, 0.0], [decay * slope, 0.0]])


def singular_angles(space: Plane) -> tuple[float, float]:
    r"""Angles of the directions $\alpha = \beta_0$ (along e) and $\alpha = \alpha_0$ (orthogonal to d), in $[0, \pi)$.

    Between them, on both sides, lie all rank-1 integrators of a scale other than 0 and d.e.

    >>> space = rni.theory.plane(encoder_norm=1, decoder_norm=1, overlap=0)
    >>> [round(angle, 4) for angle in rni.theory.singular_angles(space)]
    [1.5708, 1.5708]
    """
    along_encoder, across_decoder = space.encoder, _quarter_turn(space.decoder)
    first, second = (torch.atan2(v[1], v[0]).item() % torch.pi for v in (along_encoder, across_decoder))
    return first, second


def _from_eigenvectors(first: Tensor, second: Tensor, decay: float, other: float) -> Tensor:
    r"""$P \Lambda P^{-1} = \lambda 1 + (\gamma - \lambda)\, u w^\dagger / (w \cdot u)$ with $w \perp v$: (2, 2)."""
    reader = _quarter_turn(second)
    projector = torch.outer(first, reader) / (reader @ first)
    return other * torch.eye(2, dtype=torch.float64) + (decay - other) * projector


def _direction(angle: float) -> Tensor:
    return matrix([cos(angle), sin(angle)])


def _quarter_turn(vector: Tensor) -> Tensor:
    return torch.stack([-vector[..., 1], vector[..., 0]], dim=-1)


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else float("inf") * numerator


def _refuse_orthogonal(space: Plane) -> None:
    if space.overlap == 0:
        raise InputError("overlap: 0; allowed: any other value, this family has scale 0 only when d.e = 0")
