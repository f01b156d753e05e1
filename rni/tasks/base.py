"""The interface of a task.

A task says which outputs a network should give for its inputs.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from rni.core.registry import Registry, part

if TYPE_CHECKING:
    from torch import Tensor


@part
class Task(ABC):
    """Base class of tasks.

    Examples
    --------
    A task outside of the package is a subclass in a file of its own. A configuration names it as ``module:Class``.

    >>> class Delay(rni.tasks.Task):
    ...     inputs = outputs = 1
    ...
    ...     def targets(self, inputs):
    ...         return inputs.roll(1, dims=-2)
    >>> Delay().targets(torch.tensor([[1.0], [0.0]])).tolist()
    [[0.0], [1.0]]
    """

    @property
    @abstractmethod
    def inputs(self) -> int:
        """The number of input channels."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """The number of output channels."""

    @abstractmethod
    def targets(self, inputs: "Tensor") -> "Tensor":
        """Return the outputs that a network should give.

        Parameters
        ----------
        inputs : Tensor, shape (..., time, inputs)
            The inputs of the network.

        Returns
        -------
        Tensor, shape (..., time, outputs)
            The target of each output at each time step.
        """


TASKS: Registry[Task] = Registry("task", Task)
