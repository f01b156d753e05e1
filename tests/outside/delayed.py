"""A task outside of the package."""

from rni.core.registry import part
from rni.tasks import Integration


@part
class Delayed(Integration):
    """Integrate the inputs, and give the integrals `delay` steps later."""

    delay: int = 1

    def targets(self, inputs):
        integrals = super().targets(inputs).roll(self.delay, dims=-2)
        integrals[..., : self.delay, :] = 0
        return integrals


class Doubled(Integration):
    """Integrate the inputs, and double the integrals. The class has the fields of its parent."""

    def targets(self, inputs):
        return 2 * super().targets(inputs)
