r"""Any vanilla RNN, $\nu_t = W h_{t-1} + U x_t$, $h_t = f(\nu_t + b)$, $y_t = D^\dagger h_t + a$.

The paper's network is the case $U = W E$, $a = b = 0$; `torch.nn.RNN` has weight_hh = W, weight_ih = U and
bias_ih + bias_hh = b. A bias is counted with the activation, as the paper counts the threshold of a sigmoid, so that
the current is what arrives at a neuron. What is said of any network is measured through this one form.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from rni.activation import Activation, make
from rni.errors import InputError
from rni.network import Network
from rni.task import Integration
from rni.weights import Weights


@dataclass(frozen=True, eq=False)
class VanillaRNN:
    """W is `recurrent`, U `input_weights` (neurons, channels), b `bias` (neurons,), D `decoders` (neurons, outputs).

    decoders and `offset` a (outputs,) are None where there is no readout, the task where it isn't known what should be
    integrated. `notes` say what had to be assumed in reading the network.

    >>> net = rni.VanillaRNN.of(rni.design(rni.Integration(0.9), neurons=40).network)
    >>> net.outputs(torch.ones(1, 3, 1))[0, :, 0].round(decimals=6).tolist()
    [0.9, 1.71, 2.439]
    """

    recurrent: Weights
    input_weights: Tensor
    f: Activation
    bias: Tensor
    decoders: Tensor | None = None
    offset: Tensor | None = None
    task: Integration | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self):
        n = self.neurons
        if self.input_weights.ndim != 2 or len(self.input_weights) != n or not self.channels:
            raise InputError(f"input_weights: shape {tuple(self.input_weights.shape)}; allowed: ({n}, channels)")
        if self.bias.shape != (n,):
            raise InputError(f"bias: shape {tuple(self.bias.shape)}; allowed: ({n},)")
        if self.decoders is not None and (self.decoders.ndim != 2 or len(self.decoders) != n):
            raise InputError(f"decoders: shape {tuple(self.decoders.shape)}; allowed: ({n}, outputs)")
        outputs = () if self.decoders is None else self.decoders.shape[1:]
        if self.offset is not None and self.offset.shape != outputs:
            raise InputError(f"offset: shape {tuple(self.offset.shape)}; allowed: {tuple(outputs)}, as outputs")
        parameters = {f"{self.f.name}.{key}": values for key, values in self.f.named_buffers()}
        for name, values in parameters.items():
            if values.ndim and len(values) != n:
                raise InputError(f"{name}: {len(values)} values; allowed: 1 or {n}")
        if self.task is not None and self.task.channels != self.channels:
            raise InputError(f"decays: {self.task.channels}; allowed: {self.channels}, one for each input channel")
        like = next(self.recurrent.parameters()).detach()
        tensors = {key: value for key, value in vars(self).items() if isinstance(value, Tensor)}
        weights = (("recurrent", values) for values in self.recurrent.parameters())  # W may be too large to form
        for name, values in (*weights, *tensors.items(), *parameters.items()):
            if not bool(torch.isfinite(values).all()):
                raise InputError(f"{name}: NaN or infinite values; allowed: finite numbers")
        for name, values in tensors.items():
            object.__setattr__(self, name, values.to(like))
        object.__setattr__(self, "f", make(self.f).to(like))

    @classmethod
    @torch.no_grad()
    def of(cls, net: Network) -> "VanillaRNN":
        """The same network, weights shared: U = W E."""
        fed = net.recurrent(net.encoders.T).T
        decoders, none = net.decoders.detach(), net.decoders.new_zeros(net.channels)
        return cls(net.recurrent, fed, net.f, fed.new_zeros(net.neurons), decoders, none, net.task)

    @property
    def neurons(self) -> int:
        return self.recurrent.neurons

    @property
    def channels(self) -> int:
        return self.input_weights.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        return self.input_weights.dtype

    def steps(self, inputs: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        r"""$(\nu_t, h_t)$, each (batch, neurons), from rest, one time step after the other; nothing is stored."""
        h = None
        for x in inputs.to(self.input_weights).unbind(1):
            nu = x @ self.input_weights.T
            if h is not None:
                nu += self.recurrent(h)
            h = self.f(nu + self.bias)
            yield nu, h

    def readout(self, states: Tensor) -> Tensor:
        r"""$y = D^\dagger h + a$, (..., outputs) from states (..., neurons)."""
        if self.decoders is None:
            raise InputError("decoders: none; allowed: a network with a readout")
        y = states @ self.decoders
        return y if self.offset is None else y + self.offset

    def outputs(self, inputs: Tensor) -> Tensor:
        r"""$y_t$, (batch, time, outputs) from inputs (batch, time, channels), without storing the states."""
        return torch.stack([self.readout(h) for _, h in self.steps(inputs)], dim=1)
