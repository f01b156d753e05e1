r"""The network (section 2): $\nu_t = W(h_{t-1} + \sum_c x_{c,t} e_c)$, $h_t = f(\nu_t)$, $y_{c,t} = d_c \cdot h_t$.

With a leak $\alpha < 1$, beyond the paper: $h_t = (1-\alpha)\,h_{t-1} + \alpha f(\nu_t)$.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from rni.activations import Activation
from rni.activations.module import ActivationModule, make
from rni.core import memory
from rni.core.errors import InputError, require_is
from rni.core.tensors import stacked
from rni.tasks.integration import Integration, require_integration
from rni.weights import Dense, Weights


class Network(nn.Module):
    """A recurrent network with D channels, called like `torch.nn.RNN(batch_first=True)`: `h, h_n = net(x, h0)`.

    encoders, decoders: (neurons, channels). recurrent: a `Weights`, or W as (neurons, neurons). f: a name, an
    `Activation` or an elementwise function. Vectors and f are copied, to the dtype and device of the recurrent weights;
    inputs are cast to them.
    leak: alpha = dt / tau, above 0 and up to 1, the paper's.

    >>> task = rni.Integration([0.9, 0.8])
    >>> vectors = rni.vectors.independent(neurons=50, channels=2)
    >>> net = rni.Network(task, *vectors, torch.zeros(50, 50), "relu")  # W = 0
    >>> h, last = net(torch.randn(8, 100, 2))
    >>> h.shape, last.shape, net.outputs(torch.randn(8, 100, 2)).shape
    (torch.Size([8, 100, 50]), torch.Size([1, 8, 50]), torch.Size([8, 100, 2]))
    """

    closed_form = True  # training needs no automatic differentiation, if the other parts need none
    encoders: nn.Parameter
    decoders: nn.Parameter

    def __init__(
        self,
        task: Integration,
        encoders: Tensor,
        decoders: Tensor,
        recurrent: Weights | Tensor,
        activation: str | Mapping[str, Any] | Activation | ActivationModule | Callable[[Tensor], Tensor] = "relu",
        leak: float = 1.0,
    ):
        super().__init__()
        require_integration(task)
        if not isinstance(leak, int | float) or not 0 < leak <= 1:
            raise InputError(f"leak: {leak!r}; allowed: a number above 0, up to 1")
        self.task, self.leak = task, float(leak)
        self.recurrent = recurrent if isinstance(recurrent, Weights) else Dense(_real("recurrent", recurrent))
        like = next(self.recurrent.parameters())
        shape = (self.neurons, self.channels)
        for name, vectors in (("encoders", encoders), ("decoders", decoders)):
            if _real(name, vectors).shape != shape:
                raise InputError(f"{name}: shape {tuple(vectors.shape)}; allowed: {shape}, (neurons, channels)")
            own = vectors.detach().to(like, copy=True, memory_format=torch.contiguous_format)
            self.register_parameter(name, nn.Parameter(own))
        self.f = make(activation).to(like)
        for name, values in self.f.values().items():
            if values.ndim and len(values) != self.neurons:
                allowed = f"1 or {self.neurons}, the number of neurons"
                raise InputError(f"{self.f.name}.{name}", values, allowed, problem=f"{len(values)} values")

    @property
    def neurons(self) -> int:
        return self.recurrent.neurons

    @property
    def channels(self) -> int:
        return self.task.channels

    @property
    def dtype(self) -> torch.dtype:
        return self.encoders.dtype

    def cast(self, name: str, values: Tensor | np.ndarray) -> Tensor:
        """Real numbers of any kind in the precision and on the device of the network."""
        if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
            values = torch.as_tensor(values)
        if not isinstance(values, Tensor) or values.is_complex():
            found = str(values.dtype) if isinstance(values, Tensor) else type(values).__name__
            raise InputError(f"{name}: {found}; allowed: a tensor or an array of real numbers")
        return values.to(self.encoders)

    def __repr__(self) -> str:
        kind = type(self.recurrent).__name__
        leak = "" if self.leak == 1 else f", leak={self.leak:g}"
        return f"Network({self.neurons} neurons, {self.f!r}, {kind}, {self.task!r}, {self.dtype}{leak})"

    def steps(self, inputs: Tensor | np.ndarray, initial: Tensor | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        r"""$(\nu_t, h_t)$, each (batch, neurons), one time step after the other; nothing is stored."""
        e, h = self.encoders.T.contiguous(), None if initial is None else self.cast("initial", initial)
        for x in self.cast("inputs", inputs).unbind(1):
            # from rest, W(x e) = x (W e): no product of n x n x batch
            nu = x @ self.recurrent(e) if h is None else self.recurrent(torch.addmm(h, x, e))
            h = self.leaked(h, self.f(nu))
            yield nu, h

    def leaked(self, state: Tensor | None, active: Tensor) -> Tensor:
        r"""$(1-\alpha)\,h + \alpha f(\nu)$, where the state h is None at rest."""
        if self.leak == 1:
            return active
        return self.leak * active if state is None else torch.lerp(state, active, self.leak)

    def changed(
        self,
        recurrent: Weights | Tensor | None = None,
        *,
        encoders: Tensor | None = None,
        decoders: Tensor | None = None,
    ) -> "Network":
        """A network with other weights or vectors, and all else as it is."""
        e, d = self.encoders if encoders is None else encoders, self.decoders if decoders is None else decoders
        return Network(self.task, e, d, self.recurrent if recurrent is None else recurrent, self.f, self.leak)

    def without_leak(self) -> "Network":
        """The paper's network with the same weights: what it integrates makes this one do its task."""
        if self.leak == 1:
            return self
        return Network(self.task.without_leak(self.leak), self.encoders, self.decoders, self.recurrent, self.f)

    def forward(self, inputs: Tensor | np.ndarray, initial: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """States (batch, time, neurons) and the last one (1, batch, neurons), from inputs (batch, time, channels).

        Without the batch dimension: (time, neurons) and (1, neurons). `initial` has the shape of the last state.
        """
        inputs = self.cast("inputs", inputs)
        if inputs.ndim == 2:
            h, last = self(inputs[None], None if initial is None else self.cast("initial", initial)[None])
            return h[0], last[0]
        inputs, start = self._checked(inputs, initial)
        states = [h for _, h in self.steps(inputs, start)]
        return torch.stack(states, dim=1), states[-1][None]

    def currents(self, inputs: Tensor | np.ndarray, initial: Tensor | None = None) -> Tensor:
        r"""$\nu_t$, (batch, time, neurons)."""
        inputs, start = self._checked(inputs, initial)
        return torch.stack([nu for nu, _ in self.steps(inputs, start)], dim=1)

    def readout(self, states: Tensor) -> Tensor:
        r"""$y_c = d_c \cdot h$, (..., channels) from states (..., neurons)."""
        states = self.cast("states", states)
        if states.shape[-1:] != (self.neurons,):
            raise InputError(f"states: shape {tuple(states.shape)}; allowed: (..., {self.neurons}), one of each neuron")
        # decoders as rows, because a product with a few columns takes several times as long
        return states @ self.decoders.T.contiguous().T

    def outputs(self, inputs: Tensor | np.ndarray, initial: Tensor | None = None) -> Tensor:
        r"""$y_{c,t}$, (batch, time, channels), without storing the states: for sequences of any length."""
        inputs, start = self._checked(inputs, initial)
        groups = self.groups(inputs)
        starts = [None] * len(groups) if start is None else self.groups(start)
        each = (self.steps(*group) for group in zip(groups, starts, strict=True))
        return torch.cat([stacked((self.readout(h) for _, h in steps), inputs.shape[1]) for steps in each])

    def groups(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Sequences, or states, in groups of which the states fit into the cache."""
        return memory.in_groups(rows, self.neurons)

    def silenced(self, neurons: Sequence[int] | Tensor) -> "Network":
        """A network in which the given neurons transmit nothing: W without their rows and columns, D without theirs.

        neurons: their indices, or True for each of them and False for the others, (neurons,).
        """
        allowed = f"indices from 0 to {self.neurons - 1}, or a truth value for each neuron"
        try:
            index = torch.as_tensor(neurons)
        except (TypeError, ValueError, RuntimeError):
            raise InputError(f"neurons: {neurons!r}; allowed: {allowed}") from None
        if index.dtype == torch.bool and index.shape == (self.neurons,):
            index = index.nonzero().flatten()
        whole = not index.numel() or not (index.is_floating_point() or index.is_complex() or index.dtype == torch.bool)
        if not whole or (index.numel() and not (int(index.min()) >= 0 and int(index.max()) < self.neurons)):
            raise InputError(f"neurons: {index.tolist()}; allowed: {allowed}")
        index = index.long()
        kept = torch.ones_like(self.encoders[:, 0]).index_fill(0, index.to(self.encoders.device), 0)
        with torch.no_grad():
            return self.changed(self.recurrent.masked(kept), decoders=self.decoders * kept[:, None])

    def to_torch(self) -> tuple[nn.RNN, nn.Linear]:
        """The same network as a `torch.nn.RNN` and its linear readout: weight_hh = W, weight_ih = W E."""
        if self.f.name not in ("relu", "tanh"):
            raise InputError(f"activation: {self.f.name!r}; allowed: 'relu' or 'tanh', the two that torch.nn.RNN has")
        if self.leak != 1:
            raise InputError(f"leak: {self.leak:g}; allowed: 1, because torch.nn.RNN has none")
        needed = 2 * self.encoders.element_size() * self.neurons**2  # W, and torch.nn.RNN's own
        memory.require(needed, f"neurons: {self.neurons}", "a smaller network, because torch.nn.RNN has a full matrix")
        options = {"dtype": self.dtype, "device": self.encoders.device}
        rnn = nn.RNN(self.channels, self.neurons, nonlinearity=self.f.name, bias=False, batch_first=True, **options)
        readout = nn.Linear(self.neurons, self.channels, bias=False, **options)
        with torch.no_grad():
            fed = self.recurrent(self.encoders.T).T
            rnn.load_state_dict({"weight_hh_l0": self.recurrent.matrix(), "weight_ih_l0": fed})
            readout.weight.copy_(self.decoders.T)
        return rnn, readout

    @classmethod
    def from_torch(cls, rnn: nn.RNN, readout: nn.Linear, task: Integration, tolerance: float = 1e-5) -> Self:
        """The network of a `torch.nn.RNN`: encoders solve $W E$ = weight_ih, to a relative residual of `tolerance`.

        Refuses what the paper's network can't be: several layers or directions, biases, inputs outside W's range.
        """
        kind = type(rnn).__name__
        if not isinstance(rnn, nn.RNN) or rnn.num_layers != 1 or rnn.bidirectional:
            layers = f" with {rnn.num_layers} layers" if isinstance(rnn, nn.RNNBase) else ""
            raise InputError(f"rnn: {kind}{layers}; allowed: a torch.nn.RNN with one layer and one direction")
        for name, bias in (*rnn.named_parameters(), *readout.named_parameters()):
            if "bias" in name and bool(bias.any()):
                raise InputError(f"{name}: is not zero; allowed: a network without biases")
        if readout.in_features != rnn.hidden_size:
            read, allowed = (readout.in_features, task.channels), (rnn.hidden_size, task.channels)
            raise InputError(f"decoders: shape {read}; allowed: {allowed}, (neurons, channels)")
        weights = rnn.state_dict()
        w, fed = weights["weight_hh_l0"], weights["weight_ih_l0"]
        encoders = torch.linalg.lstsq(w.double(), fed.double(), driver="gelsd").solution
        encoders = encoders.to(w)
        residual = float((w.double() @ encoders.double() - fed).norm() / fed.norm())
        if not residual <= tolerance:
            raise InputError(
                f"weight_ih: {residual:.2g} of it lies outside the range of weight_hh in {w.dtype}; "
                f"allowed: {tolerance:.2g}, because the paper's network feeds its inputs through W"
            )
        return cls(task, encoders, readout.weight.detach().T, w, rnn.nonlinearity)

    def _checked(self, inputs: Tensor | np.ndarray, initial: Tensor | None) -> tuple[Tensor, Tensor | None]:
        inputs = self.cast("inputs", inputs)
        if inputs.ndim != 3 or inputs.shape[2] != self.channels or inputs.shape[1] == 0:
            allowed = f"(batch, time, {self.channels}) with at least one time step"
            raise InputError(f"inputs: shape {tuple(inputs.shape)}; allowed: {allowed}")
        if initial is None:
            return inputs, None
        initial = self.cast("initial", initial)
        if initial.shape != (1, len(inputs), self.neurons):
            raise InputError(
                f"initial: shape {tuple(initial.shape)}; allowed: (1, {len(inputs)}, {self.neurons}), as torch.nn.RNN"
            )
        return inputs, initial[0]


def require_network(net: Any) -> None:
    """Refuse what is no network of ours."""
    allowed = "a Network (of a design its .network, of a file what rni.load gives)"
    require_is("network", net, Network, allowed)


def _real(name: str, values: Tensor) -> Tensor:
    if not isinstance(values, Tensor) or not values.is_floating_point():
        found = str(values.dtype) if isinstance(values, Tensor) else type(values).__name__
        raise InputError(f"{name}: {found}; allowed: a tensor of real numbers, float32 or float64")
    return values
