r"""The task: map D input signals to their decaying integrals (section 2). Signals are (batch, time, channels)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rni.core.errors import InputError, found, require_is

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Integration"]

SHORT = 32  # steps, up to which one product with all earlier inputs is faster than step by step


@dataclass(frozen=True)
class Integration:
    r"""$\bar y_{c,t} = \gamma_c\,(\bar y_{c,t-1} + s_c\,x_{c,t})$: decays in [0, 1], and scales, 1 by default.

    >>> task = rni.Integration(decays=[0.5, 1.0], scales=[2.0, 1.0])
    >>> task.targets(torch.ones(3, 2)).tolist()
    [[1.0, 1.0], [1.5, 2.0], [1.75, 3.0]]
    """

    closed_form = True  # see `rni.training.descent.needs_no_autograd`
    decays: tuple[float, ...]
    scales: tuple[float, ...]

    def __init__(self, decays: Sequence[float] | float, scales: Sequence[float] | float | None = None):
        decays = _floats("decays", decays)
        scales = (1.0,) * len(decays) if scales is None else _floats("scales", scales)
        if not decays or not all(0 <= decay <= 1 for decay in decays):
            raise InputError(f"Integration.decays: {list(decays)}; allowed: one or more numbers between 0 and 1")
        if len(scales) != len(decays):
            raise InputError(f"Integration.scales: {len(scales)} scales; allowed: {len(decays)}, one for each decay")
        if not all(abs(scale) < float("inf") for scale in scales):
            raise InputError(f"Integration.scales: {list(scales)}; allowed: finite numbers")
        object.__setattr__(self, "decays", decays)
        object.__setattr__(self, "scales", scales)

    @property
    def channels(self) -> int:
        return len(self.decays)

    def targets(self, inputs: "Tensor") -> "Tensor":
        r"""$\bar y_{c,t} = s_c \sum_{k=0}^t \gamma_c^{k+1} x_{c,t-k}$ for inputs (..., time, channels)."""
        import torch  # a task alone is a few numbers, and torch takes seconds to import

        if hasattr(inputs, "__array__") and not isinstance(inputs, torch.Tensor):  # NumPy's
            inputs = torch.as_tensor(inputs)
        if not isinstance(inputs, torch.Tensor) or inputs.is_complex():
            raise InputError(f"inputs: {found(inputs)}; allowed: a tensor or an array of real numbers")
        if inputs.ndim < 2 or inputs.shape[-1] != self.channels:
            raise InputError(f"inputs: shape {tuple(inputs.shape)}; allowed: (..., time, {self.channels}), as the task")
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

    def undamped(self, leak: float) -> "Integration":
        r"""What $f(W\,\cdot)$ has to integrate for $h \leftarrow (1-\alpha)h + \alpha f(W(h + xe))$ to do this task.

        $\gamma' = 1 - (1-\gamma)/\alpha$ and $s' = \gamma s / (\alpha\gamma')$: the state forgets by itself, so
        that the recurrence has less to. The largest integral is the same.
        """
        if leak == 1:
            return self
        slowest = [1 - (1 - g) / leak for g in self.decays]
        if not all(g > 0 for g in slowest):
            raise InputError(
                f"decays: {list(self.decays)} with a leak of {leak:g}; allowed: above {1 - leak:g}, by which such a "
                "state lasts without any recurrence"
            )
        return Integration(
            slowest, [g * s / (leak * u) for g, s, u in zip(self.decays, self.scales, slowest, strict=True)]
        )

    def largest_integral(self, bound: float = 1.0) -> tuple[float, ...]:
        r"""$y_{max} = \gamma (y_{max} + s\,x_{max})$ for inputs bounded by `bound`; infinite where the decay is 1."""
        return tuple(
            g * abs(s) * bound / (1 - g) if g < 1 else float("inf")
            for g, s in zip(self.decays, self.scales, strict=True)
        )


def targets_at_once(task: Integration, inputs: "Tensor") -> "Tensor":
    """`task.targets` of finite inputs (batch, time, channels), by one product where sequences are short."""
    duration = inputs.shape[1]
    if duration > SHORT or type(task) is not Integration:
        return task.targets(inputs)
    return (_response(task, duration).to(inputs) @ inputs.permute(2, 1, 0)).permute(2, 1, 0)


@lru_cache(maxsize=16)
def _response(task: Integration, duration: int) -> "Tensor":
    r"""R (channels, time, time), float64, $R_{c,tk} = s_c \gamma_c^{t-k+1}$ for $k \leq t$: $\bar y_c = R_c\,x_c$."""
    import torch

    with torch.inference_mode(mode=False):  # whoever asks first
        ago = torch.arange(duration)[:, None] - torch.arange(duration)
        decays, scales = torch.tensor([task.decays, task.scales], dtype=torch.float64)[:, :, None, None]
        return (scales * decays ** (ago + 1).clamp(min=0)).masked_fill(ago < 0, 0.0)


def require_integration(task: Any) -> None:
    """Refuse what is no task."""
    require_is("task", task, Integration, "an Integration, such as rni.Integration([0.9, 0.8])")


def _floats(name: str, values: Any) -> tuple[float, ...]:
    """One number, or several, of Python, NumPy or torch."""
    several = isinstance(values, Iterable) and getattr(values, "ndim", 1) > 0
    numbers: Iterable[Any] = values if several else [values]
    try:
        if isinstance(values, str):
            raise TypeError
        return tuple(float(number) for number in numbers)
    except (TypeError, ValueError, RuntimeError):
        shape = getattr(values, "shape", None)
        given = repr(values) if shape is None else f"shape {tuple(shape)}"
        raise InputError(f"Integration.{name}: {given}; allowed: one or more numbers") from None
