"""Random numbers by seed and purpose, and quasi-random points.

Drawing more for one purpose leaves the others as they are. Averages over quasi-random points have less noise than those
over as many independent ones.
"""

import hashlib
from functools import lru_cache
from typing import Any

import torch
from torch import Generator, Tensor
from torch.quasirandom import SobolEngine

from rni.errors import require_is


def stream(seed: int, purpose: str) -> Generator:
    """The generator of one purpose, e.g. "vectors"."""
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return Generator().manual_seed(int.from_bytes(digest[:8], "little", signed=True))


def require_generator(generator: Any) -> None:
    """Refuse a seed, or NumPy's."""
    allowed = "a torch.Generator, such as torch.Generator().manual_seed(0)"
    require_is("generator", generator, (Generator, type(None)), allowed)


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
