"""An activation outside of the package."""

from rni.activations import Activation
from rni.core.registry import Positive, part


@part
class Cubic(Activation):
    """f(x) = x + k x^3, with the strength k."""

    strength: Positive = 0.5

    def __call__(self, current):
        return current + self.strength * current**3


def swish(current):
    return current * current.sigmoid()
