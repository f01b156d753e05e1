r"""The current manifold (section 5): currents close to the span of the D leading left singular vectors of W."""

import torch
from torch import Tensor

from rni.network import Network


@torch.no_grad()
def current_ratio(net: Network, directions: Tensor, inputs: Tensor) -> float:
    r"""$r = \langle |\nu^\perp_t| \rangle_t / \langle |\nu^\parallel_t| \rangle_t$ inside and outside a subspace.

    `directions` (neurons, D) span it, orthonormal as singular vectors are. Currents are not stored.
    """
    inside = outside = 0.0
    for nu, _ in net.steps(inputs.to(net.encoders)):
        coordinates = nu @ directions
        inside += float(coordinates.norm(dim=1).sum())
        outside += float((nu - coordinates @ directions.T).norm(dim=1).sum())
    return outside / inside if inside > 0 else float("nan")


def null_ratio(neurons: int, channels: int) -> float:
    r"""$r_{null} = \sqrt{n/D - 1}$: the ratio if all directions of the current were alike."""
    return (neurons / channels - 1) ** 0.5
