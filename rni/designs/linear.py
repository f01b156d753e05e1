r"""Linear networks that integrate exactly."""

import torch
from torch import Generator, Tensor

from rni.core.errors import InputError
from rni.designs.currents import TOLERANCE, least_norm, preferred_currents


def linear_factors(
    encoders: Tensor, decoders: Tensor, strengths: Tensor, generator: Generator
) -> tuple[Tensor, Tensor]:
    r"""Compute L with $D^\dagger L = 1$, and M with $M^\dagger L = P^{-1}$ and $M^\dagger E = 1$.

    If columns of $[L, E]$ depend on each other, the two conditions on M agree only if the dependence is
    $L\alpha = E P^{-1}\alpha$ with $\alpha$ in the kernel of $D^\dagger E P^{-1} - 1$. L is therefore chosen such that
    this holds on the whole kernel. Independent vectors then need n >= 2D minus the dimension of the kernel, and nothing
    else.

    The preferred currents fail for encoders in the span of the decoders. They are therefore also tried with random
    parts, and the solution with the smaller $|W|$ is returned.

    Parameters
    ----------
    encoders, decoders : Tensor
        (neurons, channels), with independent columns of length 1.
    strengths : Tensor
        $p = s / (|d||e|)$, (channels,).
    generator : torch.Generator
        Draws the random parts.

    Returns
    -------
    left, right : Tensor
        L and M, (neurons, channels).

    Raises
    ------
    InputError
        If there are too few neurons, or if the vectors are too close to dependent ones.
    """
    n, channels = decoders.shape
    eye = torch.eye(channels, dtype=decoders.dtype)
    _, singular, right = torch.linalg.svd(decoders.T @ (encoders / strengths) - eye)
    kernel = right[singular <= TOLERANCE]
    if n < 2 * channels - len(kernel):
        raise InputError("neurons", n, f"at least {2 * channels}, two for each channel, with these vectors")

    aim = preferred_currents(encoders, decoders, strengths, generator)
    drawn = torch.randn(n, channels, generator=generator, dtype=aim.dtype) / n**0.5
    values = torch.cat([torch.diag(1 / strengths), eye])
    solutions = []
    for left in (aim, aim + drawn):
        # D'L = 1, then L = E / P on the kernel
        left = left + decoders @ torch.linalg.solve(decoders.T @ decoders, eye - decoders.T @ left)
        left = left + (encoders / strengths - left) @ kernel.T @ kernel
        right = least_norm(torch.cat([left, encoders], 1), values)
        if right is not None:
            squared_norm = ((left * strengths).T @ (left * strengths)).mul(right.T @ right).sum()
            solutions.append((float(squared_norm), left, right))
    if not solutions:
        raise InputError("encoders", None, "vectors that are further from dependent", problem="no exact solution found")
    _, left, right = min(solutions, key=lambda solution: solution[0])
    return left, right
