"""Recorded activity with its inputs."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rni.core.errors import InputError
from rni.core.tensors import real


@dataclass(frozen=True, eq=False)
class Recording:
    """Recorded activity (trials, time, neurons) and the inputs (trials, time, channels) that caused it.

    One trial may come without the dimension of trials. Missing or infinite samples raise `InputError`.

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
            shape = tuple(values.shape)
            if values.ndim not in (2, 3) or not values.numel():
                raise InputError(name, shape, "(trials, time, n) or (time, n)", problem=f"shape {shape}")
            missing = int((~torch.isfinite(values)).sum())
            if missing:
                problem = f"{missing} of {values.numel()} samples are missing (NaN) or infinite"
                allowed = "finite numbers, so leave out those trials or neurons, or fill them in"
                raise InputError(name, missing, allowed, problem=problem)
        if activity.shape[:-1] != inputs.shape[:-1]:
            shapes = tuple(activity.shape), tuple(inputs.shape)
            allowed = "the same trials and times, (trials, time, neurons) and (trials, time, channels)"
            raise InputError("activity, inputs", shapes, allowed, problem=f"shapes {shapes[0]}, {shapes[1]}")
        one = activity.ndim == 2
        object.__setattr__(self, "activity", (activity[None] if one else activity).double())
        object.__setattr__(self, "inputs", (inputs[None] if one else inputs).double())

    @property
    def neurons(self) -> int:
        return self.activity.shape[2]

    @property
    def channels(self) -> int:
        return self.inputs.shape[2]
