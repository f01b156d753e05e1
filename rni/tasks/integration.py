"""The integration of several signals, each with its own decay and scale.

Section 2 of the paper defines this task.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from rni.core.errors import InputError
from rni.core.registry import Number, Numbers, as_tuple, part
from rni.tasks.base import TASKS, Task

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import Tensor

    OneOrMore = float | Sequence[float] | Tensor | np.ndarray
else:
    from rni.core.lazy import torch

__all__ = ["Integration"]

SHORT_SEQUENCE = 32  # time steps, up to which one product with all inputs is faster than a loop over time
Decays = Annotated[tuple[Annotated[Number, Field(ge=0, le=1)], ...], BeforeValidator(as_tuple), Field(min_length=1)]


@TASKS.register("integration")
@part
class Integration(Task):
    r"""Integrate each input channel with its own decay and scale.

    .. math:: \bar y_{c,t} = \gamma_c \, (\bar y_{c,t-1} + s_c \, x_{c,t})

    Here :math:`x` are the inputs and :math:`\bar y` the targets.

    Parameters
    ----------
    decays : float, sequence of float, array or tensor
        The decay :math:`\gamma_c` of each channel, from 0 to 1. The integral forgets an input within about
        :math:`1 / (1 - \gamma_c)` time steps.
    scales : float, sequence of float, array or tensor, optional
        The scale :math:`s_c` of each channel. The default is 1.

    Examples
    --------
    >>> task = rni.Integration(decays=[0.5, 1.0], scales=[2.0, 1.0])
    >>> task.targets(torch.ones(3, 2)).tolist()
    [[1.0, 1.0], [1.5, 2.0], [1.75, 3.0]]
    """

    closed_form: ClassVar[bool] = True  # see `rni.training.descent.needs_no_autograd`

    decays: Decays
    scales: Numbers = Field(default=None, validate_default=True)

    if TYPE_CHECKING:  # the fields are tuples, but the arguments may be more

        def __init__(self, decays: OneOrMore, scales: OneOrMore | None = None) -> None: ...

    @field_validator("scales", mode="before")
    @classmethod
    def _default_scales(cls, scales: Any, info: ValidationInfo) -> Any:
        return (1.0,) * len(info.data.get("decays", ())) if scales is None else scales

    @field_validator("scales")
    @classmethod
    def _one_scale_per_decay(cls, scales: tuple[float, ...], info: ValidationInfo) -> tuple[float, ...]:
        decays = info.data.get("decays", scales)
        if len(scales) != len(decays):
            raise InputError("scales", scales, f"{len(decays)}, one for each decay")
        return scales

    @property
    def channels(self) -> int:
        """The number of channels. Each is an input channel and an output channel."""
        return len(self.decays)

    @property
    def inputs(self) -> int:
        return self.channels

    @property
    def outputs(self) -> int:
        return self.channels

    def targets(self, inputs: "Tensor") -> "Tensor":
        r"""Integrate the inputs over time.

        .. math:: \bar y_{c,t} = s_c \sum_{k=0}^t \gamma_c^{k+1} x_{c,t-k}

        Parameters
        ----------
        inputs : Tensor or array, shape (..., time, channels)
            The inputs of the network.

        Returns
        -------
        Tensor, shape (..., time, channels)
            The integral of each channel at each time step.
        """
        if hasattr(inputs, "__array__") and not isinstance(inputs, torch.Tensor):
            inputs = torch.as_tensor(inputs)
        if not isinstance(inputs, torch.Tensor) or inputs.is_complex():
            raise InputError("inputs", inputs, "a tensor or an array of real numbers", problem=_type_name(inputs))
        if inputs.ndim < 2 or inputs.shape[-1] != self.channels:
            allowed = f"(..., time, {self.channels}), as the task"
            raise InputError("inputs", inputs, allowed, problem=f"shape {tuple(inputs.shape)}")
        inputs = inputs if inputs.is_floating_point() else inputs.to(torch.get_default_dtype())
        if not inputs.numel():
            return inputs.clone()

        decays, scales = inputs.new_tensor(self.decays), inputs.new_tensor(self.scales)
        integral = torch.zeros_like(inputs[..., 0, :])
        integrals = []
        for x in inputs.unbind(-2):
            integral = decays * (integral + scales * x)
            integrals.append(integral)
        return torch.stack(integrals, dim=-2)

    def without_leak(self, leak: float) -> "Integration":
        r"""Return the task that the recurrent input of a leaky network has to do, so that the network does this task.

        In a leaky network, :math:`h \leftarrow (1 - \alpha) h + \alpha f(W(h + x e))`. The state keeps
        :math:`1 - \alpha` of an integral by itself, and the recurrent input has to supply the remainder:

        .. math:: \gamma' = 1 - (1 - \gamma) / \alpha, \qquad s' = \gamma s / (\alpha \gamma')

        The largest integral is the same for both tasks.

        Parameters
        ----------
        leak : float
            The leak :math:`\alpha` of the network, above 0 and up to 1.

        Raises
        ------
        InputError
            If a decay is not above 1 - leak. A leaky state cannot forget faster than it does without recurrence.
        """
        if leak == 1:
            return self
        decays = [1 - (1 - g) / leak for g in self.decays]
        if min(decays) <= 0:
            allowed = f"above {1 - leak:g}, the decay of a state without recurrence for a leak of {leak:g}"
            raise InputError("decays", self.decays, allowed)
        scales = [g * s / (leak * u) for g, s, u in zip(self.decays, self.scales, decays, strict=True)]
        return Integration(decays, scales)

    def largest_integral(self, bound: float = 1.0) -> tuple[float, ...]:
        r"""Return the largest integral of each channel for inputs between -`bound` and `bound`.

        It solves :math:`y_{max} = \gamma (y_{max} + s\,x_{max})`, and is infinite where the decay is 1.
        """
        return tuple(
            g * abs(s) * bound / (1 - g) if g < 1 else float("inf")
            for g, s in zip(self.decays, self.scales, strict=True)
        )


def targets_at_once(task: Integration, inputs: "Tensor") -> "Tensor":
    """Return `task.targets(inputs)`, computed by one matrix product where sequences are short.

    Parameters
    ----------
    task : Integration
        The task. A subclass computes its own targets.
    inputs : Tensor, shape (batch, time, channels)
        The inputs, which have to be finite.
    """
    duration = inputs.shape[1]
    if duration > SHORT_SEQUENCE or type(task) is not Integration:
        return task.targets(inputs)
    return (_impulse_responses(task, duration).to(inputs) @ inputs.permute(2, 1, 0)).permute(2, 1, 0)


@lru_cache(maxsize=16)
def _impulse_responses(task: Integration, duration: int) -> "Tensor":
    r"""Return R, (channels, time, time) in float64, with :math:`\bar y_c = R_c\,x_c`.

    .. math:: R_{c,tk} = s_c \gamma_c^{t-k+1} \text{ for } k \leq t
    """
    # the cache may be filled under inference mode, whose tensors autograd could not use later
    with torch.inference_mode(mode=False):
        delay = torch.arange(duration)[:, None] - torch.arange(duration)
        decays, scales = torch.tensor([task.decays, task.scales], dtype=torch.float64)[:, :, None, None]
        return (scales * decays ** (delay + 1).clamp(min=0)).masked_fill(delay < 0, 0.0)


def require_integration(task: Any) -> Integration:
    """Return the task. Raise an `InputError` if it is not an `Integration`."""
    if not isinstance(task, Integration):
        raise InputError("task", task, "an Integration, such as rni.Integration([0.9, 0.8])")
    return task


def _type_name(values: Any) -> str:
    return str(values.dtype) if hasattr(values, "dtype") else type(values).__name__
