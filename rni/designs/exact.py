r"""Linear and ReLU networks meet their conditions exactly, and the same ones whatever the size of vectors and scales.

The conditions hold for all z, so the columns of L and M may be stretched: with $E = \hat E |E|$, $D = \hat D |D|$,
$L = \hat L\, S\Gamma |D|^{-1}$ and $M = \hat M |E|^{-1}$ they read $\hat D^\dagger f(\hat L z) = z$,
$\hat M^\dagger f(\hat L z) = P^{-1} z$ and $\hat M^\dagger \hat E = 1$, where $P = S |D|^{-1} |E|^{-1}$, the strengths.
"""

from collections.abc import Callable

import torch
from torch import Generator, Tensor

from rni.core.errors import InputError
from rni.designs.currents import TOLERANCE, least_norm, preferred_currents
from rni.tasks.integration import Integration

Solver = Callable[[Tensor, Tensor, Tensor, Generator], tuple[Tensor, Tensor]]


def exact_factors(
    solve: Solver, task: Integration, encoders: Tensor, decoders: Tensor, generator: Generator
) -> tuple[Tensor, Tensor]:
    r"""L and M, both (neurons, channels), from the solution $\hat L, \hat M$ for vectors of length 1 and decays 1."""
    scales, decays = encoders.new_tensor(task.scales), encoders.new_tensor(task.decays)
    e, d = encoders.norm(dim=0), decoders.norm(dim=0)
    left, right = solve(encoders / e, decoders / d, scales / d / e, generator)
    return left * (scales * decays / d), right / e


def linear_factors(
    encoders: Tensor, decoders: Tensor, strengths: Tensor, generator: Generator
) -> tuple[Tensor, Tensor]:
    r"""L with $D^\dagger L = 1$ and M with $M^\dagger L = P^{-1}$, $M^\dagger E = 1$.

    Both conditions on M agree where $[L, E]$ has dependent columns only if these are $L\alpha = E P^{-1}\alpha$, with
    $\alpha$ in the kernel of $D^\dagger E P^{-1} - 1$: that, and n >= 2D less the dimension of the kernel, is all
    that independent vectors need. Of the preferred currents, which fail for encoders in the span of the decoders, and
    the same with drawn parts, those with the lesser |W|.
    """
    n, channels = decoders.shape
    eye = torch.eye(channels, dtype=decoders.dtype)
    _, singular, right = torch.linalg.svd(decoders.T @ (encoders / strengths) - eye)
    kernel = right[singular <= TOLERANCE]
    if n < 2 * channels - len(kernel):
        raise InputError(f"neurons: {n}; allowed: at least {2 * channels}, two for each channel, with these vectors")
    aim = preferred_currents(encoders, decoders, strengths, generator)
    drawn = torch.randn(n, channels, generator=generator, dtype=aim.dtype) / n**0.5
    values, found = torch.cat([torch.diag(1 / strengths), eye]), []
    for left in (aim, aim + drawn):
        left = left + decoders @ torch.linalg.solve(decoders.T @ decoders, eye - decoders.T @ left)
        left = left + (encoders / strengths - left) @ kernel.T @ kernel
        right = least_norm(torch.cat([left, encoders], 1), values)
        if right is not None:
            squared_norm = ((left * strengths).T @ (left * strengths)).mul(right.T @ right).sum()
            found.append((float(squared_norm), left, right))
    if not found:
        raise InputError(
            "encoders, decoders: no exact solution found; allowed: vectors that are further from dependent"
        )
    _, left, right = min(found, key=lambda pair: pair[0])
    return left, right
