"""Random numbers by seed and purpose, and quasi-random points.

Drawing more for one purpose leaves the others as they are. Averages over quasi-random points have less noise than those
over as many independent ones.
"""

import hashlib
from functools import lru_cache
from math import ceil, gcd
from typing import TYPE_CHECKING, Any

from rni.core.errors import require_is

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor
else:
    from rni.core.lazy import torch


def stream(seed: int, purpose: str) -> "Generator":
    """The generator of one purpose, e.g. "vectors"."""
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little", signed=True))


def require_generator(generator: Any) -> None:
    """Refuse a seed, or NumPy's."""
    allowed = "a torch.Generator, such as torch.Generator().manual_seed(0)"
    require_is("generator", generator, (torch.Generator, type(None)), allowed)


@lru_cache(maxsize=16)
def points(count: int, dimensions: int) -> "Tensor":
    """Sobol's points, scrambled, in the unit cube: (count, dimensions), float64, always the same."""
    return torch.quasirandom.SobolEngine(dimensions, scramble=True, seed=0).draw(count, dtype=torch.float64)


def shifted_points(count: int, dimensions: int, generator: "Generator | None" = None) -> "Tensor":
    """The same, all shifted by one random vector, around the cube: each point alone is uniform in it.

    Independent points in more than the 21201 dimensions of Sobol's.
    """
    if dimensions > torch.quasirandom.SobolEngine.MAXDIM:
        return torch.rand(count, dimensions, generator=generator, dtype=torch.float64)
    return (points(count, dimensions) + torch.rand(dimensions, generator=generator, dtype=torch.float64)) % 1


@lru_cache(maxsize=16)
def lattice(pairs: int, dimensions: int) -> "Tensor":
    r"""$x_i = i\,(1, a, a^2, \dots) / N \bmod 1$ for the first half of i < N = 2 pairs: (pairs, dimensions), float64.

    Of up to 128 that have no divisor in common with N, a is that of the least mean square error of periodic functions
    (Korobov's, $P_2 = \langle\prod_c (1 + 2\pi^2 B_2(x_c))\rangle - 1$). As it is odd, the second half is the first,
    half of the cube away in each dimension.
    """
    count = 2 * pairs
    i, least, best = torch.arange(count), float("inf"), torch.empty(0)
    candidates = [a for a in range(1, pairs + 1) if gcd(a, count) == 1]  # N - a is the mirror image of a
    for a in candidates[:: ceil(len(candidates) / 128)]:
        powers = torch.tensor([pow(a, c, count) for c in range(dimensions)])
        x = (i[:, None] * powers % count).double() / count
        error = float((1 + 2 * torch.pi**2 * (x * (x - 1) + 1 / 6)).prod(1).mean())
        if error < least - 1e-12:  # of equal ones the first, however sums are rounded
            least, best = error, x[:pairs]
    return best


def folded_points(pairs: int, dimensions: int, generator: "Generator | None" = None) -> "Tensor":
    r"""A lattice, shifted as above, then folded at the middle of the cube from -1 to 1: (2 pairs, dimensions).

    Folding, $z = 1 - 2\,|2x - 1|$, makes a function periodic, whose average over a shifted lattice has less noise; and
    it takes points that are half of the cube apart to opposite ones: the second half is minus the first.
    """
    shift = torch.rand(dimensions, generator=generator, dtype=torch.float64)
    half = 1 - 2 * (2 * ((lattice(pairs, dimensions) + shift) % 1) - 1).abs()
    return torch.cat([half, -half])
