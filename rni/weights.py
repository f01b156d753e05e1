r"""The recurrent matrix W in its forms. W[i, j] is the weight from neuron j to neuron i.

States are rows here, (batch, neurons): `forward` gives $W h$ for each of them, `pull_back` gives $W^\dagger\delta$.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Generator, Tensor, nn

from rni import memory
from rni.errors import InputError

FEW = 64  # states, for which a product is fastest the other way round


class Weights(nn.Module, ABC):
    """A recurrent matrix of any form."""

    neurons: int

    @abstractmethod
    def forward(self, states: Tensor, out: Tensor | None = None) -> Tensor:
        r"""$W h$ for each row h of (rows, neurons), into `out` if given."""

    @abstractmethod
    def pull_back(self, errors: Tensor, onto: Tensor | None = None) -> Tensor:
        r"""$W^\dagger \delta$ for each row $\delta$ of (rows, neurons), added to `onto` if given."""

    @abstractmethod
    def matrix(self) -> Tensor:
        """W itself, (neurons, neurons)."""

    def factors(self) -> tuple[Tensor, Tensor] | None:
        """(left, right) with W = left @ right.T where the form is factored, else None."""
        return None

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All that the form is made of, by the names it has in files: `from_tensors` makes the same form again."""

    @abstractmethod
    def descend_(self, left: Tensor, right: Tensor, learning_rate: float) -> None:
        r"""$W \leftarrow W - \eta\, l^\dagger r$ for a gradient left.T @ right, and back to the form's constraint."""

    def project_(self) -> None:
        """Restore the constraint that the form stands for; none by default."""


class Dense(Weights):
    """All n x n weights, free."""

    def __init__(self, value: Tensor):
        super().__init__()
        if value.ndim != 2 or value.shape[0] != value.shape[1] or not len(value):
            raise InputError(f"recurrent: shape {tuple(value.shape)}; allowed: (neurons, neurons)")
        _check_dtype("recurrent", value)
        # row by row in memory, however it came: optimisers read it with gradients of that order
        self.value = nn.Parameter(value.detach().clone(memory_format=torch.contiguous_format))
        self.neurons = len(value)

    def forward(self, states: Tensor, out: Tensor | None = None) -> Tensor:
        if out is None or len(states) > FEW:
            return torch.mm(states, self.value.T, out=out)
        return out.copy_(torch.mm(self.value, states.T).T)  # the same, a third faster

    def pull_back(self, errors: Tensor, onto: Tensor | None = None) -> Tensor:
        return errors @ self.value if onto is None else onto.addmm_(errors, self.value)

    def matrix(self) -> Tensor:
        return self.value

    def tensors(self) -> dict[str, Tensor]:
        return {"recurrent": self.value}

    @torch.no_grad()
    def descend_(self, left: Tensor, right: Tensor, learning_rate: float) -> None:
        self.value.addmm_(left.T, right, alpha=-learning_rate)  # one fused product, no n x n temporary
        self.project_()


class Dale(Dense):
    """Each neuron excites or inhibits: column j of W has the sign of neuron j, +1 or -1 in `signs` (neurons,)."""

    signs: Tensor

    def __init__(self, value: Tensor, signs: Tensor):
        super().__init__(value)
        if signs.shape != (self.neurons,) or not bool((signs.abs() == 1).all()):
            raise InputError(f"signs: shape {tuple(signs.shape)}; allowed: ({self.neurons},), each +1 or -1")
        self.register_buffer("signs", signs.to(value.dtype))
        self.project_()

    def tensors(self) -> dict[str, Tensor]:
        return {**super().tensors(), "signs": self.signs}

    @torch.no_grad()
    def project_(self) -> None:
        """Set to 0 every weight whose sign is not its column's: the paper's projection after each step."""
        reach = self.signs * float("inf")
        self.value.clamp_(reach.clamp(max=0), reach.clamp(min=0))  # in place: less than the step itself costs


class LowRank(Weights):
    r"""W = left @ right.T, both (neurons, rank): products cost n x rank and W is never formed.

    A step of descent adds the gradient's columns. When they would be more than `room`, both factors are compressed to
    W's singular vectors, without the singular values below `tolerance` $\sigma_1$: each time W moves by less than
    that in the spectral norm, and what gains less than that between two compressions never grows. Rounding sets a
    floor to the tolerance, ten times the precision of the numbers.
    """

    def __init__(self, left: Tensor, right: Tensor, tolerance: float = 1e-8, room: int = 32):
        super().__init__()
        if left.ndim != 2 or left.shape != right.shape or not len(left):
            raise InputError(
                f"recurrent_left: shape {tuple(left.shape)}, recurrent_right: shape {tuple(right.shape)}; "
                "allowed: both (neurons, rank)"
            )
        if left.dtype != right.dtype:
            raise InputError(f"recurrent_left, recurrent_right: {left.dtype}, {right.dtype}; allowed: the same of both")
        _check_dtype("recurrent_left", left)
        if not (0 <= tolerance < 1 and 0 <= room < float("inf")):
            raise InputError(f"tolerance, room: {tolerance}, {room}; allowed: from 0 to below 1, and from 0")
        # each column in one piece of memory, in which products with few states are fastest
        self.left, self.right = (nn.Parameter(torch.cat([factor.detach().T]).T) for factor in (left, right))
        self.neurons, self.tolerance, self.room = len(left), tolerance, room
        self.register_load_state_dict_pre_hook(_take_rank)

    def forward(self, states: Tensor, out: Tensor | None = None) -> Tensor:
        return torch.mm(states @ self.right, self.left.T, out=out)

    def pull_back(self, errors: Tensor, onto: Tensor | None = None) -> Tensor:
        reduced = errors @ self.left
        return reduced @ self.right.T if onto is None else onto.addmm_(reduced, self.right.T)

    def matrix(self) -> Tensor:
        allowed = "a smaller network, where W has to be formed"
        memory.require(self.neurons**2 * self.left.element_size(), f"neurons: {self.neurons}", allowed)
        return self.left @ self.right.T

    def factors(self) -> tuple[Tensor, Tensor]:
        return self.left, self.right

    def tensors(self) -> dict[str, Tensor]:
        limits = {"tolerance": self.tolerance, "room": self.room}
        limits = {name: torch.tensor(value, dtype=torch.float64) for name, value in limits.items()}
        return {"recurrent_left": self.left, "recurrent_right": self.right, **limits}

    @torch.no_grad()
    def descend_(self, left: Tensor, right: Tensor, learning_rate: float) -> None:
        rank = self.left.shape[1]
        if rank + len(left) <= self.room:
            self.left.data = torch.cat([self.left.T, left * -learning_rate]).T
            self.right.data = torch.cat([self.right.T, right]).T
        else:
            c = left.new_full((rank + len(left),), -learning_rate)
            c[:rank] = 1
            self._compress_((self.left.T, left), (self.right.T, right), c)

    @torch.no_grad()
    def compress_(self) -> None:
        """Reduce the factors to W's singular vectors of values above the tolerance."""
        self._compress_((self.left.T,), (self.right.T,), self.left.new_ones(self.left.shape[1]))

    def _compress_(self, left: tuple[Tensor, ...], right: tuple[Tensor, ...], c: Tensor) -> None:
        r"""$W = l\,c\,r^\dagger = Q_l\,(u\,\sigma\,v^\dagger)\,Q_r^\dagger$ by QR of l and r; WV and V are kept.

        c scales the columns, and $R_l\,c\,R_r^\dagger = u\,\sigma\,v^\dagger$ is small. Neither Q is formed, since
        $WV = l\,(c\,R_r^\dagger v)$ and $V = W^\dagger U/\sigma = r\,(c\,R_l^\dagger u/\sigma)$.
        """
        r_left, r_right = _triangle(left) * c, _triangle(right)
        u, values, v = torch.linalg.svd(r_left @ r_right.T)
        floor = max(self.tolerance, 10 * torch.finfo(values.dtype).eps)
        kept = values > floor * values[:1]
        self.left.data = _combine(v[kept] @ (r_right * c), left).T
        self.right.data = _combine((u[:, kept] / values[kept]).T @ r_left, right).T


def _triangle(blocks: tuple[Tensor, ...], neurons: int = 2048) -> Tensor:
    """R of (k, n).T = Q R for the rows of all blocks, by neurons that fit into the cache: its cost is linear in n."""
    pieces = zip(*(block.split(neurons, dim=1) for block in blocks), strict=True)
    triangles = [torch.linalg.qr(torch.cat(piece).T, mode="r").R for piece in pieces]
    return triangles[0] if len(triangles) == 1 else torch.linalg.qr(torch.cat(triangles), mode="r").R


def _combine(coefficients: Tensor, blocks: tuple[Tensor, ...]) -> Tensor:
    """coefficients @ cat(blocks), without the copy."""
    first, *others = zip(coefficients.split([len(block) for block in blocks], dim=1), blocks, strict=True)
    total = torch.mm(*first)
    for each in others:
        total.addmm_(*each)
    return total


def _take_rank(weights: nn.Module, saved: Mapping[str, Tensor], prefix: str, *_: Any) -> None:
    """Before loading: a checkpoint has the rank of its moment."""
    assert isinstance(weights, LowRank)
    for name, factor in (("left", weights.left), ("right", weights.right)):
        if prefix + name in saved:
            factor.data = factor.new_empty(*saved[prefix + name].shape[1:], weights.neurons).T


NAMES = ("recurrent", "signs", "recurrent_left", "recurrent_right", "tolerance", "room")


def from_tensors(tensors: Mapping[str, Tensor]) -> Weights:
    """The form that gave these tensors by `Weights.tensors`; those of other names are left alone.

    Files of before have no `tolerance` and `room`.
    """
    given = {name: tensors[name] for name in NAMES if name in tensors}
    match sorted(given.keys() - {"tolerance", "room"}):
        case ["recurrent_left", "recurrent_right"]:
            limits = {name: _number(name, given[name]) for name in ("tolerance", "room") if name in given}
            return LowRank(given["recurrent_left"], given["recurrent_right"], **limits)
        case ["recurrent"] if len(given) == 1:
            return Dense(given["recurrent"])
        case ["recurrent", "signs"] if len(given) == 2:
            dale = Dale(given["recurrent"], given["signs"])
            if not torch.equal(dale.matrix(), given["recurrent"]):
                raise InputError("recurrent: against Dale's law; allowed: each column of its sign in `signs`")
            return dale
    raise InputError(
        f"{', '.join(given) or 'recurrent'}: {'do not make up a matrix' if given else 'missing'}; allowed: recurrent W "
        "(neurons, neurons), alone or with signs (neurons,), or recurrent_left and recurrent_right (neurons, rank)"
    )


def _number(name: str, value: Tensor) -> Any:
    if value.numel() != 1 or not 0 <= float(value) < float("inf"):
        raise InputError(f"{name}: {value.numel()} values, or negative; allowed: one number from 0")
    return int(value) if name == "room" else float(value)


def _check_dtype(name: str, values: Tensor) -> None:
    if not values.is_floating_point():
        raise InputError(f"{name}: {values.dtype}; allowed: floating-point numbers, torch.float32 or torch.float64")


def random_matrix(
    neurons: int, radius: float, generator: Generator | None = None, signs: Tensor | None = None
) -> Tensor:
    """A Gaussian matrix rescaled to the given spectral radius, float64; 0 for radius 0; with Dale's signs if given."""
    if radius == 0:
        return torch.zeros(neurons, neurons, dtype=torch.float64)
    value = torch.randn(neurons, neurons, generator=generator, dtype=torch.float64)
    if signs is not None:
        value = value.abs() * signs
    return value * (radius / torch.linalg.eigvals(value).abs().max())


def dale_signs(neurons: int, inhibitory: float, generator: Generator | None = None) -> Tensor:
    """(neurons,) of +1 and -1, the given fraction of them -1, drawn without order."""
    if not 0 <= inhibitory <= 1:
        raise InputError(f"inhibitory: {inhibitory}; allowed: a fraction from 0 to 1")
    signs = torch.ones(neurons, dtype=torch.float64)
    signs[torch.randperm(neurons, generator=generator)[: round(inhibitory * neurons)]] = -1
    return signs
