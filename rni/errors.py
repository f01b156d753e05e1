"""The errors a user can act on. Messages read `thing: value; allowed: ...`, in one line."""


class InputError(ValueError):
    """A value, a file or a combination of options that can't be used, and what could be."""


class Diverged(RuntimeError):
    """Training ran away. `losses` has all of them up to then; the network keeps the weights it had."""

    def __init__(self, step: int, loss: float, learning_rate: float, reference: float, losses: list[float]):
        super().__init__(step, loss, learning_rate, reference, losses)
        self.step, self.loss, self.learning_rate, self.reference, self.losses = self.args

    def __str__(self) -> str:
        return (
            f"training diverged at step {self.step}: loss {self.loss:.3g} (a silent network has {self.reference:.3g}); "
            f"learning_rate: {self.learning_rate:.3g}; allowed: a smaller one"
        )
