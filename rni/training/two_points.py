r"""Plain descent on the exact ReLU proxy loss (section 4.2), in the few dimensions that it does not leave.

While no current $\nu = We$ changes its sign, ReLU is a projection on the neurons of positive ones, for z = 1, or of
negative ones, for z = -1. The span of both parts of e, d and the factors of W holds all that a step adds to W: started
at W = 0, it has four dimensions, whatever the number of neurons. A neuron whose current changes its sign becomes a
dimension of its own. With an orthonormal basis Q, $W = Q M Q^\dagger$, and M follows the same descent.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor, nn

from rni.losses import Gradient, ReLUProxyLoss
from rni.losses.gradient import RECURRENT
from rni.networks.network import Network
from rni.training.descent import Plan, descend
from rni.training.optimizers import GradientDescent
from rni.weights import Dense, LowRank, Weights

Z = {np.dtype(dtype): np.array([[1], [-1]], dtype) for dtype in (np.float32, np.float64)}
ALONE = 2  # beside 1, -1 and 0, the signs of the currents of neurons that go together
SINGLES = 100  # neurons with a dimension of their own; for more of them the span is made anew


def descend_on_two_points(net: Network, plan: Plan) -> list[float]:
    """Train a ReLU network of `LowRank` weights, or of `Dense` ones from W = 0, on the exact ReLU proxy loss.

    The steps are those of `descend`. While it trains, the weights of the network are a `LowRank` in a growing span.

    Returns
    -------
    list of float
        The loss before each step.
    """
    weights, loss = net.recurrent, plan.loss
    assert isinstance(loss, ReLUProxyLoss)
    spanned = net.recurrent = _Spanned(weights, net)
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # `descend` raises Diverged
            return descend(net, replace(plan, loss=_TwoPoints(loss.task), optimizer=_InSpan()))
    finally:
        net.recurrent = weights
        if spanned.moved:
            spanned.write(weights)


def two_points(
    m: np.ndarray, slope: np.ndarray, e: np.ndarray, unit: np.ndarray, decay: float
) -> tuple[float, np.ndarray, np.ndarray]:
    r"""The loss $\sum_{z=\pm1} |\rho_z|^2$ and $\partial L/\partial W$ = left.T @ right; see `proxy_gradient`.

    With $d^\dagger$ as one more row of W, currents and output have one residual,
    $\rho_z = (W; d^\dagger)\,\lfloor z\nu\rfloor_+ - z\gamma\,(\nu; s)$.
    m (k + 1, k), W with that row; e and the slope $f'(\nu)$ (k,); unit (k + 1,), $(\nu; s)$; left, right (3, k).
    """
    decayed = decay * Z[e.dtype]
    h, left, right = np.empty((2, len(e)), e.dtype), *np.empty((2, 3, len(e)), e.dtype)
    nu = unit[:-1]
    np.multiply(slope, nu, out=h[0])
    np.subtract(h[0], nu, out=h[1])
    residual = h @ m.T
    residual -= decayed * unit
    errors = residual @ m
    np.multiply(residual[:, :-1], 2, out=left[:2])
    left[2] = 2 * (slope * (errors[0] + errors[1]) - errors[1])  # f'(-x) = 1 - f'(x)
    np.subtract(h, decayed * e, out=right[:2])
    right[2] = e
    return float(np.vdot(residual, residual)), left, right


class _TwoPoints(ReLUProxyLoss):
    closed_form = True

    def draw(self, generator: Generator | None = None, dtype: torch.dtype | None = None) -> Any:
        """Draw nothing, because z is always 1 and -1."""

    def gradient(self, net: Network, inputs: Any, parameters: frozenset[str] = RECURRENT) -> tuple[float, Gradient]:
        assert isinstance(net.recurrent, _Spanned)
        steps = net.recurrent.steps
        loss, left, right = two_points(steps.m, steps.slope, steps.e, steps.unit, self.task.decays[0])
        return loss, Gradient(torch.from_numpy(left), torch.from_numpy(right))


class _InSpan(GradientDescent):
    closed_form = True

    def step(self, net: Network, gradient: Gradient, learning_rate: float) -> None:
        net.recurrent.descend_(gradient.left, gradient.right, learning_rate)


class _Span(NamedTuple):
    r"""$W = Q M Q^\dagger$: Q has columns of neurons that go together, then one for each of those `alone`."""

    basis: np.ndarray  # (neurons, groups), orthonormal columns, each of neurons of one side
    core: np.ndarray  # M (k, k)
    sides: np.ndarray  # (neurons,): the signs of the currents of neurons that go together, or ALONE
    alone: np.ndarray  # (k - groups,): indices of neurons

    def columns(self) -> np.ndarray:
        """Q, (neurons, k)."""
        q = np.zeros((len(self.basis), len(self.core)), self.core.dtype)
        q[:, : self.basis.shape[1]] = self.basis
        q[self.alone, self.basis.shape[1] + np.arange(len(self.alone))] = 1
        return q

    def within(self, vector: np.ndarray) -> np.ndarray:
        r"""$Q^\dagger v$."""
        return np.append(vector @ self.basis, vector[self.alone])


class _Steps:
    """A span, and what a step computes with there; see `two_points`."""

    def __init__(self, span: _Span, vectors: list[np.ndarray], scale: float):
        self.e, d = map(span.within, vectors)
        self.m, self.unit = np.vstack([span.core, d]), np.full(len(d) + 1, scale, d.dtype)
        self.span, self.nu, self.groups = span._replace(core=self.m[:-1]), self.unit[:-1], span.basis.shape[1]
        together = abs(span.sides) == 1
        self.signed = span.sides[together, None] * span.basis[together]
        self.silent = span.basis[span.sides == 0]
        side = span.sides[abs(span.basis).argmax(0)] if self.groups else span.sides[:0]  # of each column
        self.slope = np.append((side + 1) / 2, np.zeros(len(span.alone))).astype(d.dtype)

    def look(self) -> bool:
        r"""Take $\nu$ and $f'(\nu)$ of M as it is; whether all neurons are still on their sides."""
        np.matmul(self.span.core, self.e, out=self.nu)
        together, alone = self.nu[: self.groups], self.nu[self.groups :]
        if len(alone):
            self.slope[self.groups :] = np.heaviside(alone, 0.5)
        if len(self.silent) and self.signs(self.silent @ together).any():
            return False
        return not (self.signed @ together).min(initial=1) <= 0  # no number: the loss will tell

    def signs(self, nu: np.ndarray) -> np.ndarray:
        """Of currents; 0 for what may be rounding."""
        rounding = 10 * np.finfo(nu.dtype).eps * np.linalg.norm(self.span.core) * np.linalg.norm(self.e)
        return np.where(abs(nu) > rounding, np.sign(nu), 0).astype(np.int8)


class _Spanned(LowRank):
    """W in a span that follows the neurons to their sides. A copy is a plain `LowRank`."""

    encoder: Tensor
    decoder: Tensor
    steps: _Steps
    moved = False  # whether W is no longer that of the start
    closed_form = True

    def __init__(self, weights: Weights, net: Network):
        nn.Module.__init__(self)
        self.neurons = weights.neurons
        self.tolerance, self.room = getattr(weights, "tolerance", 0.0), getattr(weights, "room", 32)
        (self.scale,) = net.task.scales
        for name, vectors in (("encoder", net.encoders), ("decoder", net.decoders)):
            self.register_buffer(name, vectors.detach()[:, 0].clone())
        left, right = map(_array, weights.factors() or 2 * [net.encoders[:, :0]])
        sides, spanning = np.zeros(self.neurons, np.int8), np.column_stack([*self.vectors, left, right])
        norms = np.linalg.norm(spanning, axis=0)
        basis = _basis(spanning[:, norms > 0] / norms[norms > 0], sides)
        self.basis, self.core = nn.Parameter(torch.empty(0)), nn.Parameter(torch.empty(0))
        self.register_buffer("sides", torch.empty(0))
        self.register_buffer("alone", torch.empty(0))
        self._settle(_Span(basis, (basis.T @ left) @ (right.T @ basis), sides, np.empty(0, int)))
        self.requires_grad_(all(parameter.requires_grad for parameter in weights.parameters()))
        self.register_load_state_dict_pre_hook(_take_shapes)
        self.register_load_state_dict_post_hook(_take_values)

    @property
    def vectors(self) -> list[np.ndarray]:
        return [_array(self.encoder), _array(self.decoder)]

    @property
    def left(self) -> Tensor:
        span = self.steps.span
        return torch.from_numpy(span.columns() @ span.core)

    @property
    def right(self) -> Tensor:
        return torch.from_numpy(self.steps.span.columns())

    def __deepcopy__(self, memo: dict[int, Any]) -> LowRank:
        return LowRank(self.left, self.right, self.tolerance, self.room)

    def descend_(self, left: Tensor, right: Tensor, learning_rate: float) -> None:
        r"""$M \leftarrow M - \eta\, l^\dagger r$, for a gradient in the basis Q."""
        steps, core, self.moved = self.steps, self.steps.span.core, True
        core -= (learning_rate * left.numpy().T) @ right.numpy()
        if not steps.look():
            self._settle(self._regrouped(steps))

    def compress_(self) -> None:
        """Nothing: it is as small as can be."""

    @torch.no_grad()
    def write(self, weights: Weights) -> None:
        """Let these weights be W."""
        if isinstance(weights, LowRank):
            weights.left.data, weights.right.data = self.left, self.right
            if weights.left.isfinite().all():
                weights.compress_()
        else:
            assert isinstance(weights, Dense)
            torch.mm(self.left, self.right.T, out=weights.value)

    def _settle(self, span: _Span) -> None:
        """Take this span, or one that fits the sides of the neurons."""
        while not (steps := _Steps(span, self.vectors, self.scale)).look():
            span = self._regrouped(steps)
        self.steps = steps
        for name, values in steps.span._asdict().items():
            getattr(self, name).data = torch.from_numpy(values)

    def _regrouped(self, steps: _Steps) -> _Span:
        basis, core, before, alone = span = steps.span
        nu = basis @ steps.nu[: steps.groups]
        nu[alone] = steps.nu[steps.groups :]
        signs = steps.signs(nu)
        sides = np.where(before == 0, signs, np.where(before == signs, before, np.int8(ALONE)))
        (new,) = np.nonzero((sides == ALONE) & (before != ALONE))
        if len(alone) + len(new) > SINGLES:
            q, (u, values, v) = span.columns(), np.linalg.svd(core)
            kept = values > max(self.tolerance, 10 * np.finfo(core.dtype).eps) * values[0]
            together = _basis(np.column_stack([*self.vectors, q @ u[:, kept], q @ v[kept].T]), signs)
            change = together.T @ q
            return _Span(together, change @ core @ change.T, signs, alone[:0])
        together = _basis(basis, sides)
        change = np.zeros((together.shape[1] + len(alone) + len(new), len(core)), core.dtype)
        change[:, : steps.groups] = np.vstack([together.T @ basis, np.zeros((len(alone), steps.groups)), basis[new]])
        change[together.shape[1] + np.arange(len(alone)), steps.groups + np.arange(len(alone))] = 1
        return _Span(together, change @ core @ change.T, sides, np.append(alone, new))


def _basis(spanning: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """Orthonormal columns that span the parts of the given ones, (neurons, any number), on each side."""
    mine = [(sides == side) & spanning.any(1) for side in (1, -1, 0)]
    blocks = [_orthonormal(spanning[which]) for which in mine]
    basis = np.zeros((len(sides), sum(block.shape[1] for block in blocks)), spanning.dtype)
    begin = 0
    for which, block in zip(mine, blocks, strict=True):
        basis[which, begin : begin + block.shape[1]] = block
        begin += block.shape[1]
    return basis


def _orthonormal(columns: np.ndarray) -> np.ndarray:
    u, values, _ = np.linalg.svd(columns, full_matrices=False)
    return u[:, values > 10 * np.finfo(values.dtype).eps * values.max(initial=0)]


def _array(values: Tensor) -> np.ndarray:
    return values.detach().numpy()


def _take_shapes(weights: nn.Module, saved: Mapping[str, Tensor], prefix: str, *_: Any) -> None:
    """Before loading: a checkpoint has the span of its moment."""
    assert isinstance(weights, _Spanned)
    for name in _Span._fields:
        if prefix + name in saved:
            getattr(weights, name).data = torch.empty_like(saved[prefix + name])


def _take_values(weights: nn.Module, _: Any) -> None:
    assert isinstance(weights, _Spanned)
    weights._settle(_Span(*(_array(getattr(weights, name)) for name in _Span._fields)))
    weights.moved = True
