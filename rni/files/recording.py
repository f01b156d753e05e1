"""Activity recorded elsewhere, with the inputs behind it."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rni.core.errors import InputError
from rni.core.tensors import real


@dataclass(frozen=True, eq=False)
class Recording:
    """Activity (trials, time, neurons) and the inputs it was recorded under, (trials, time, channels); or one trial.

    >>> net = rni.design(rni.Integration(0.95), neurons=20).network
    >>> x = rni.inputs.white_noise(30, 50, 1, torch.Generator().manual_seed(0)).double()
    >>> recording = rni.Recording(activity=net(x)[0].detach(), inputs=x)
    >>> recording.neurons, recording.channels, rni.analyze(recording).verdict.kind
    (20, 1, 'integrates')
    """

    activity: Tensor
    inputs: Tensor

    def __init__(self, activity: Tensor | np.ndarray, inputs: Tensor | np.ndarray):
        activity, inputs = real("activity", activity), real("inputs", inputs)
        for name, values in (("activity", activity), ("inputs", inputs)):
            if values.ndim not in (2, 3) or not values.numel():
                raise InputError(f"{name}: shape {tuple(values.shape)}; allowed: (trials, time, n) or (time, n)")
            missing = int((~torch.isfinite(values)).sum())
            if missing:
                raise InputError(
                    f"{name}: {missing} of {values.numel()} samples are missing (NaN) or infinite; allowed: finite "
                    "numbers, so leave out those trials or neurons, or fill them in"
                )
        if activity.shape[:-1] != inputs.shape[:-1]:
            raise InputError(
                f"activity, inputs: shapes {tuple(activity.shape)}, {tuple(inputs.shape)}; allowed: the same trials "
                "and times, (trials, time, neurons) and (trials, time, channels)"
            )
        one = activity.ndim == 2
        object.__setattr__(self, "activity", (activity[None] if one else activity).double())
        object.__setattr__(self, "inputs", (inputs[None] if one else inputs).double())

    @property
    def neurons(self) -> int:
        return self.activity.shape[2]

    @property
    def channels(self) -> int:
        return self.inputs.shape[2]
