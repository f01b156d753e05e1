"""Quasi-random points: their averages have less noise than those of as many independent ones."""

from functools import lru_cache

import torch
from torch import Generator, Tensor
from torch.quasirandom import SobolEngine


@lru_cache(maxsize=16)
def points(count: int, dimensions: int) -> Tensor:
    """Sobol's points, scrambled, in the unit cube: (count, dimensions), float64, always the same."""
    return SobolEngine(dimensions, scramble=True, seed=0).draw(count, dtype=torch.float64)


def shifted_points(count: int, dimensions: int, generator: Generator | None = None) -> Tensor:
    """The same, all shifted by one random vector, around the cube: each point alone is uniform in it.

    Independent points in more than the 21201 dimensions of Sobol's.
    """
    if dimensions > SobolEngine.MAXDIM:
        return torch.rand(count, dimensions, generator=generator, dtype=torch.float64)
    return (points(count, dimensions) + torch.rand(dimensions, generator=generator, dtype=torch.float64)) % 1
