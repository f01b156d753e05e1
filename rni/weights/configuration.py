"""Configurations of the recurrent weights before training.

The weights themselves are torch modules, in `rni.weights.dense`, `rni.weights.lowrank` and `rni.weights.dale`. This
module does not load torch.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import isqrt
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from rni.core import memory
from rni.core.errors import InputError
from rni.core.lazy import LazyModule
from rni.core.registry import Registry, part

if TYPE_CHECKING:
    import torch
    from torch import Generator

    from rni.weights import dale, dense, lowrank
    from rni.weights.base import Weights
else:
    from rni.core.lazy import torch

    dale, dense, lowrank = (LazyModule(f"rni.weights.{name}") for name in ("dale", "dense", "lowrank"))

Stream = Callable[[str], "Generator"]
"""Returns the random generator for a purpose, such as "weights"."""


@part
class WeightsConfiguration(ABC):
    """Base class of the configurations of weights.

    Examples
    --------
    >>> configuration = rni.weights.WEIGHTS.build({"name": "dale", "inhibitory": 0.25})
    >>> configuration.form().__name__, configuration.weight_count(neurons=100)
    ('Dale', 10000)
    """

    @property
    def name(self) -> str:
        """The registered name, or ``module:Class`` for a configuration from outside the package."""
        return WEIGHTS.name(self)

    @classmethod
    @abstractmethod
    def form(cls) -> "type[Weights]":
        """Return the class of the weights."""

    @abstractmethod
    def build(self, neurons: int, radius: float, dtype: "torch.dtype", stream: Stream, noisy: bool) -> "Weights":
        """Build the weights before training.

        Parameters
        ----------
        neurons : int
            The number of neurons.
        radius : float
            The spectral radius of W. W = 0 for radius 0.
        dtype : torch.dtype
            The precision of the network.
        stream : callable
            Returns the random generator for a purpose.
        noisy : bool
            Whether the gradients of the training will be noisy, because they are estimated from random samples.
        """

    def check(self, radius: float, element_wise: bool) -> None:  # noqa: B027
        """Raise an `InputError` if the weights cannot have this spectral radius, or steps of single elements."""

    def weight_count(self, neurons: int) -> int:
        """Return the approximate number of weights, which determines the time of a product with W."""
        return neurons**2

    def require_memory(self, neurons: int, radius: float, size: int) -> None:  # noqa: B027
        """Raise an `InputError` if weights of `size` bytes each do not fit into memory."""


WEIGHTS: Registry[WeightsConfiguration] = Registry("weights", WeightsConfiguration)


@WEIGHTS.register("dense")
@part
class DenseWeights(WeightsConfiguration):
    """A full matrix W without constraints. A random W is Gaussian.

    Examples
    --------
    >>> rni.weights.WEIGHTS.build("dense")
    DenseWeights()
    """

    @classmethod
    def form(cls) -> "type[Weights]":
        return dense.Dense

    def build(self, neurons: int, radius: float, dtype: "torch.dtype", stream: Stream, noisy: bool) -> "Weights":
        return dense.Dense(dense.random_matrix(neurons, radius, stream("weights")).to(dtype))

    def require_memory(self, neurons: int, radius: float, size: int) -> None:
        # W is drawn in float64 and then copied to its precision. Its eigenvalues need two more copies.
        bytes_per_weight = 24 if radius else 8 + size
        what = f"network.neurons: {neurons}, with {self.name} weights"
        memory.require(
            bytes_per_weight * neurons**2,
            what,
            lambda free: f'up to {isqrt(int(free / bytes_per_weight))}, or weights = "lowrank"',
        )


@WEIGHTS.register("dale")
@part
class DaleWeights(DenseWeights):
    """A full matrix W in which each neuron either excites or inhibits all others.

    Parameters
    ----------
    inhibitory : float
        The fraction of inhibitory neurons, from 0 to 1.

    Examples
    --------
    >>> stream = lambda purpose: torch.Generator().manual_seed(0)
    >>> w = rni.weights.DaleWeights(inhibitory=0.25).build(100, 0.9, torch.float64, stream, noisy=False)
    >>> int((w.signs < 0).sum())
    25
    """

    inhibitory: Annotated[float, Field(ge=0, le=1)] = 0.25

    @classmethod
    def form(cls) -> "type[Weights]":
        return dale.Dale

    def build(self, neurons: int, radius: float, dtype: "torch.dtype", stream: Stream, noisy: bool) -> "Weights":
        signs = dale.dale_signs(neurons, self.inhibitory, stream("signs"))
        return dale.Dale(dense.random_matrix(neurons, radius, stream("weights"), signs).to(dtype), signs)


@WEIGHTS.register("lowrank")
@part
class LowRankWeights(WeightsConfiguration):
    r"""A matrix W in factors, :math:`W = \sum_k l_k r_k^\dagger`.

    The factors before training are Gaussian, or empty for W = 0.

    Parameters
    ----------
    tolerance : float, optional
        The singular values of W below this multiple of the largest one are left out during training. The default is
        1e-8, or 1e-4 where gradients are noisy. Noisy gradients fill W with singular values below about 1e-4, which
        take time and change neither the losses nor the result.
    rank : int, optional
        The rank of W before training. The default is W = 0.

    Examples
    --------
    >>> rni.weights.LowRankWeights(rank=2)
    LowRankWeights(tolerance=None, rank=2)
    """

    tolerance: Annotated[float, Field(gt=0, lt=1)] | None = None
    rank: Annotated[int, Field(ge=1, le=1000)] | None = None

    @classmethod
    def form(cls) -> "type[Weights]":
        return lowrank.LowRank

    def build(self, neurons: int, radius: float, dtype: "torch.dtype", stream: Stream, noisy: bool) -> "Weights":
        shape = 2, neurons, self.rank or 0
        left, right = torch.randn(*shape, generator=stream("weights"), dtype=torch.float64).unbind()
        if self.rank:
            # the eigenvalues of right.T @ left are those of W, except for zeros
            left *= radius / torch.linalg.eigvals(right.T @ left).abs().max()
        return lowrank.LowRank(left.to(dtype), right.to(dtype), self.tolerance or (1e-4 if noisy else 1e-8))

    def check(self, radius: float, element_wise: bool) -> None:
        if element_wise:
            raise InputError("training.optimizer", "adam", "'sgd' for lowrank weights")
        if self.rank is None and radius > 0:
            raise InputError("network.initial_radius", radius, "0 for lowrank weights")
        if self.rank is not None and radius == 0:
            allowed = "above 0 for lowrank weights that start with a rank"
            raise InputError("network.initial_radius", radius, allowed)

    def weight_count(self, neurons: int) -> int:
        return neurons * min(neurons, 240)  # a step takes about as long as one with dense rows of 240 weights
