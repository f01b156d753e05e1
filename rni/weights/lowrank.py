r"""W in factors, $W = \sum_k l_k r_k^\dagger$: networks of any size."""

from collections.abc import Mapping
from typing import Any, Self

import torch
from torch import Tensor, nn

from rni.core import memory
from rni.core.errors import InputError
from rni.weights.base import Weights, check_dtype


class LowRank(Weights):
    r"""W = left @ right.T, both (neurons, rank): products cost n x rank and W is never formed.

    Compressed, V = right are W's right singular vectors and left is WV, without the singular values below `tolerance`
    $\sigma_1$. Descent changes left within the span of V, and gives V new columns for what the terms of a gradient have
    outside, until what is left of them, by the root of their summed squares, is below `tolerance` $\sigma_1$. With more
    than `room` new columns W is compressed again. What gains less than that at a time never grows. Rounding sets a
    floor to the tolerance, ten times the precision of the numbers.

    >>> w = rni.weights.LowRank(torch.randn(100_000, 2), torch.randn(100_000, 2))  # W would take 40 GB
    >>> w(torch.ones(1, 100_000)).shape
    torch.Size([1, 100000])
    """

    closed_form = True
    names = frozenset({"recurrent_left", "recurrent_right"})
    optional = frozenset({"tolerance", "room"})  # files of before have none
    kept: Tensor

    def __init__(self, left: Tensor, right: Tensor, tolerance: float = 1e-8, room: int = 32):
        super().__init__()
        for name, factor in (("recurrent_left", left), ("recurrent_right", right)):
            check_dtype(name, factor)
        if left.ndim != 2 or left.shape != right.shape or not len(left):
            shapes = f"shapes {tuple(left.shape)} and {tuple(right.shape)}"
            raise InputError("recurrent_left, recurrent_right", shapes, "both (neurons, rank)", problem=shapes)
        if left.dtype != right.dtype:
            dtypes = f"{left.dtype} and {right.dtype}"
            raise InputError("recurrent_left, recurrent_right", dtypes, "one precision for both", problem=dtypes)
        if not 0 <= tolerance < 1:
            raise InputError("tolerance", tolerance, "a number from 0 to below 1")
        if not 0 <= room < float("inf"):
            raise InputError("room", room, "a whole number, 0 or more")
        # each column in one piece of memory, in which products with few states are fastest
        self.left, self.right = (nn.Parameter(torch.cat([factor.detach().T]).T) for factor in (left, right))
        self.neurons, self.tolerance, self.room = len(left), tolerance, room
        self.register_buffer("kept", torch.tensor(0))  # columns after the last compression; 0 for factors as given
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

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Self:
        limits = {name: _number(name, tensors[name]) for name in cls.optional if name in tensors}
        return cls(tensors["recurrent_left"], tensors["recurrent_right"], **limits)

    def tensors(self) -> dict[str, Tensor]:
        limits = {"tolerance": self.tolerance, "room": self.room}
        limits = {name: torch.tensor(value, dtype=torch.float64) for name, value in limits.items()}
        return {"recurrent_left": self.left, "recurrent_right": self.right, **limits}

    def masked(self, kept: Tensor) -> Weights:
        return LowRank(self.left * kept[:, None], self.right * kept[:, None], self.tolerance, self.room)

    def embed(self, basis: Tensor) -> Weights:
        return LowRank(basis @ self.left, basis @ self.right, self.tolerance, self.room)

    @torch.no_grad()
    def descend_(self, left: Tensor, right: Tensor, learning_rate: float) -> None:
        r"""$W \leftarrow W - \eta\, l^\dagger r$ with $r = (r V)\, V^\dagger + r_\perp$."""
        if self.kept:
            right = self._descend_along_(self.left.T, self.right.T, left, right, learning_rate)
            new = self._directions(right, learning_rate * torch.linalg.vector_norm(left, dim=1))
            if new is not None:
                if len(new):
                    columns = torch.zeros_like(new)
                    self._descend_along_(columns, new, left, right, learning_rate)
                    self.left.data = torch.cat([self.left.T, columns]).T
                    self.right.data = torch.cat([self.right.T, new]).T
                if self.left.shape[1] > self.kept + self.room:
                    self.compress_()
                return
        c = left.new_full((self.left.shape[1] + len(left),), -learning_rate)
        c[: self.left.shape[1]] = 1
        self._compress_((self.left.T, left), (self.right.T, right), c)

    @staticmethod
    def _descend_along_(columns: Tensor, basis: Tensor, left: Tensor, right: Tensor, learning_rate: float) -> Tensor:
        """Take the step along the rows of a basis, and return what `right` has outside of them."""
        along = right @ basis.T
        columns.addmm_(along.T, left, alpha=-learning_rate)
        return torch.addmm(right, along, basis, alpha=-1)

    def _directions(self, right: Tensor, weights: Tensor) -> Tensor | None:
        r"""Orthonormal rows without which the weighted terms of a step are less than the tolerance allows, by the root
        of their summed squares. None where the terms are so large that their Gram matrix does not have the digits.

        $\sigma_1$ is the length of W's longest column along V, which begins as $U_1\sigma_1$.
        """
        allowed = self._floor() ** 2 * torch.linalg.vector_norm(self.left, dim=0).square().max()
        sizes = (torch.linalg.vector_norm(right, dim=1) * weights).square()
        if sizes.sum() <= allowed:
            return right[:0]
        if not allowed > 100 * torch.finfo(right.dtype).eps * sizes.sum():
            return None
        terms = right * weights[:, None]
        values, vectors = torch.linalg.eigh(terms @ terms.T)
        needed = values.cumsum(0) > allowed
        return (vectors[:, needed] / values[needed].sqrt()).T @ terms

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
        kept = values > self._floor() * values[:1]
        self.left.data = _combine(v[kept] @ (r_right * c), left).T
        self.right.data = _combine((u[:, kept] / values[kept]).T @ r_left, right).T
        self.kept.fill_(len(self.left.T))

    def _floor(self) -> float:
        return max(self.tolerance, 10 * torch.finfo(self.left.dtype).eps)


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


def _number(name: str, value: Tensor) -> Any:
    if value.numel() != 1 or not 0 <= float(value) < float("inf"):
        raise InputError(name, value, "one number, 0 or more", problem=f"{value.numel()} values, or negative")
    return int(value) if name == "room" else float(value)
