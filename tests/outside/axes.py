"""A set of vectors outside of the package."""

import torch

from rni.core.registry import part
from rni.weights.vectors import Vectors, VectorSet


@part
class Axes(VectorSet):
    """Encoders and decoders along single neurons, the encoders from neuron `first` on."""

    first: int = 0

    def draw(self, neurons, channels, generator):
        axes = torch.eye(neurons, dtype=torch.float64)[:, self.first :]
        return Vectors(axes[:, :channels], axes[:, channels : 2 * channels])
