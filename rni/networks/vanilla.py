r"""Any vanilla RNN, leaky or not, in the two forms of the literature; what is said of a network is measured through it.

rate:    $h_t = (1 - \alpha)\,h_{t-1} + \alpha f(W h_{t-1} + U x_t + b)$; the state is h
current: $v_t = (1 - \alpha)\,v_{t-1} + \alpha\,(W h_{t-1} + U x_t + b)$ with $h_t = f(v_t)$; the state is v

and $y_t = D^\dagger h_t + a$. The paper's network has $\alpha = 1$, $U = W E$, $a = b = 0$; `torch.nn.RNN` has W as
weight_hh, U as weight_ih and b as bias_ih + bias_hh. The current $\nu_t = (1 - \alpha)\,\nu_{t-1} + \alpha\,(W h_{t-1}
+ U x_t)$ is what arrives at a neuron over the time of its leak, $v - b$ in the current form: a bias is counted with the
activation, as the paper counts the threshold of a sigmoid. So a threshold within f, $W f(u + b) + U x$ with the state
u, is the bias b of the state $v = u + b$.
"""

import copy
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch
from torch import Generator, Tensor

from rni.activations import ACTIVATIONS
from rni.activations.module import ActivationModule, make
from rni.core import memory
from rni.core.errors import InputError
from rni.core.tensors import stacked
from rni.networks.network import Network
from rni.tasks.integration import Integration
from rni.weights import Weights

Form = Literal["rate", "current"]
Read = Literal["rates", "state", "unbiased"]

OWN = 2**31 - 1  # seed of the process noise, which inputs from small seeds have nothing of


@dataclass(frozen=True, eq=False)
class VanillaRNN:
    r"""W is `recurrent`, U `input_weights` (neurons, channels), b `bias` (neurons,), D `decoders` (neurons, outputs).

    decoders and `offset` a (outputs,) are None where there is no readout, the task where it isn't known what should be
    integrated. `notes` say what had to be assumed in reading the network. `leak` is $\alpha = dt/\tau$, one or
    (neurons,); `reads` what decoders read: rates h, the state, or, of thresholds that only the recurrence has,
    $f(v - b)$, "unbiased"; `initial` the state (neurons,) before the first step, 0 where None; `noise` the deviation of
    what is added to each neuron's state at each step; `dt` the time of a step.

    >>> net = rni.VanillaRNN.of(rni.design(rni.Integration(0.9), neurons=40).network)
    >>> net.outputs(torch.ones(1, 3, 1))[0, :, 0].round(decimals=6).tolist()
    [0.9, 1.71, 2.439]
    """

    recurrent: Weights
    input_weights: Tensor
    f: ActivationModule
    bias: Tensor
    decoders: Tensor | None = None
    offset: Tensor | None = None
    task: Integration | None = None
    notes: tuple[str, ...] = ()
    leak: Tensor | float = 1.0
    form: Form = "rate"
    reads: Read = "rates"
    initial: Tensor | None = None
    noise: float = 0.0
    dt: float | None = None

    def __post_init__(self):
        n = self.neurons
        shape = tuple(self.input_weights.shape)
        if len(shape) != 2 or shape[0] != n or not shape[1]:
            raise InputError("input_weights", shape, f"({n}, channels)", problem=f"shape {shape}")
        for name, values in (("bias", self.bias), ("initial", self.initial)):
            if values is not None and values.shape != (n,):
                raise InputError(name, tuple(values.shape), f"({n},)", problem=f"shape {tuple(values.shape)}")
        outputs = ()
        if self.decoders is not None:
            shape = tuple(self.decoders.shape)
            if len(shape) != 2 or shape[0] != n:
                raise InputError("decoders", shape, f"({n}, outputs)", problem=f"shape {shape}")
            outputs = shape[1:]
        if self.offset is not None and self.offset.shape != outputs:
            shape = tuple(self.offset.shape)
            raise InputError("offset", shape, f"{outputs}, as outputs", problem=f"shape {shape}")
        f = make(self.f)
        parameters = {f"{f.name}.{key}": values for key, values in f.values().items()}
        for name, values in parameters.items():
            if values.ndim and len(values) != n:
                raise InputError(name, len(values), f"1 or {n}", problem=f"{len(values)} values")
        if self.task is not None and self.task.channels != self.channels:
            raise InputError("decays", self.task.channels, f"{self.channels}, one for each input channel")

        leak = torch.as_tensor(self.leak, dtype=torch.float64)
        if leak.shape not in ((), (n,)):
            shape = tuple(leak.shape)
            raise InputError("leak", shape, f"one number or ({n},)", problem=f"shape {shape}")
        if not bool(((leak > 0) & (leak <= 1)).all()):
            values = f"{float(leak.min()):g} to {float(leak.max()):g}" if leak.ndim else f"{float(leak):g}"
            raise InputError("leak", self.leak, "above 0 and up to 1", problem=values)
        for name, value, kinds in (("form", self.form, Form), ("reads", self.reads, Read)):
            if value not in get_args(kinds):
                raise InputError(name, value, ", ".join(get_args(kinds)))
        if self.reads == "unbiased" and self.form == "rate":
            raise InputError("reads", self.reads, "rates, state", problem="'unbiased' in the rate form")
        if not 0 <= self.noise < float("inf"):
            raise InputError("noise", self.noise, "a finite number from 0")
        if self.dt is not None and not 0 < self.dt < float("inf"):
            raise InputError("dt", self.dt, "a finite number above 0")

        like = next(self.recurrent.parameters()).detach()
        tensors = {key: value for key, value in vars(self).items() if isinstance(value, Tensor)}
        weights = (("recurrent", values) for values in self.recurrent.parameters())  # W may be too large to form
        for name, values in (*weights, *tensors.items(), *parameters.items()):
            if not bool(torch.isfinite(values).all()):
                raise InputError(name, None, "finite numbers", problem="NaN or infinite values")
        for name, values in tensors.items():
            object.__setattr__(self, name, values.to(like))
        object.__setattr__(self, "f", f.to(like))

    @classmethod
    @torch.no_grad()
    def of(cls, net: Network) -> "VanillaRNN":
        """The same network, weights shared: U = W E."""
        fed = net.recurrent(net.encoders.T).T
        decoders, none = net.decoders.detach(), net.decoders.new_zeros(net.channels)
        return cls(net.recurrent, fed, net.f, fed.new_zeros(net.neurons), decoders, none, net.task, leak=net.leak)

    def double(self) -> "VanillaRNN":
        """The same network in float64."""
        return replace(self, recurrent=copy.deepcopy(self.recurrent).double())

    def replace(self, **fields: Any) -> "VanillaRNN":
        """Return a copy with other values of some fields, for values that were checked before."""
        net = copy.copy(self)
        for name, value in fields.items():
            object.__setattr__(net, name, value.to(self.input_weights) if isinstance(value, Tensor) else value)
        return net

    @property
    def neurons(self) -> int:
        return self.recurrent.neurons

    @property
    def channels(self) -> int:
        return self.input_weights.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        return self.input_weights.dtype

    def rate(self, state: Tensor) -> Tensor:
        """h, (..., neurons), of states (..., neurons)."""
        return state if self.form == "rate" else self.f(state)

    def arriving(self, state: Tensor, x: Tensor | None = None) -> Tensor:
        r"""$W h + U x$, (batch, neurons), of states (batch, neurons) and inputs (batch, channels), or none."""
        fed_back = self.recurrent(self.rate(state))
        return fed_back if x is None else torch.addmm(fed_back, x, self.input_weights.T)

    def step(self, state: Tensor, x: Tensor | None = None) -> Tensor:
        r"""$s \mapsto (1 - \alpha)\,s + \alpha f(W h + U x + b)$, without f in the current form; without noise."""
        return self._moved(state, self.arriving(state, x))

    def _moved(self, state: Tensor, arriving: Tensor) -> Tensor:
        towards = arriving + self.bias
        return self._leaked(state, self.f(towards) if self.form == "rate" else towards)

    def _leaked(self, before: Tensor, towards: Tensor) -> Tensor:
        return (1 - self.leak) * before + self.leak * towards if self._leaky else towards

    @property
    def _leaky(self) -> bool:
        return isinstance(self.leak, Tensor) or self.leak != 1

    def gain(self, state: Tensor, x: Tensor | None = None) -> Tensor:
        """$f'$ where the step has it, (batch, neurons): at what arrives in the rate form, at v in the current form."""
        return self.f.derivative(self.arriving(state, x) + self.bias if self.form == "rate" else state)

    def jacobian(self, state: Tensor, x: Tensor | None = None) -> Tensor:
        r"""$1 - \alpha + \alpha f' W$ in the rate form, $1 - \alpha + \alpha W f'$ in the current one, (n, n) each."""
        w, gain, leak = self.recurrent.matrix().detach(), self.gain(state, x), self.leak * torch.ones_like(self.bias)
        coupled = gain[:, :, None] * w if self.form == "rate" else w * gain[:, None, :]
        return torch.diag(1 - leak) + leak[:, None] * coupled

    def start(self, batch: int) -> Tensor:
        """The states (batch, neurons) before the first step."""
        rest = torch.zeros_like(self.bias) if self.initial is None else self.initial
        return rest.expand(batch, -1)

    def _walk(self, inputs: Tensor, initial: Tensor | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """What arrives and the state after it, each (batch, neurons), step by step, with the same noise each time."""
        state = self.start(len(inputs)) if initial is None else initial
        generator = Generator().manual_seed(OWN)
        for x in inputs.to(self.input_weights).unbind(1):
            arriving = self.arriving(state, x)
            state = self._moved(state, arriving)
            if self.noise:
                state = state + self.noise * torch.randn(state.shape, generator=generator, dtype=state.dtype)
            yield arriving, state

    def run(self, inputs: Tensor, initial: Tensor | None = None) -> Tensor:
        """States (batch, time, neurons) from inputs (batch, time, channels), and from `initial` (batch, neurons)."""
        return torch.stack([state for _, state in self._walk(inputs, initial)], dim=1)

    def end(self, inputs: Tensor, initial: Tensor | None = None) -> Tensor:
        """The last states of `run`, (batch, neurons); nothing else is stored."""
        return deque(self._walk(inputs, initial), maxlen=1)[0][1]

    def steps(self, inputs: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        r"""$(\nu_t, h_t)$, each (batch, neurons), one time step after the other; nothing is stored."""
        nu = self.recurrent(self.rate(self.start(len(inputs))))
        for arriving, state in self._walk(inputs):
            nu = self._leaked(nu, arriving)
            yield nu, self.rate(state)

    def readout(self, states: Tensor) -> Tensor:
        r"""$y = D^\dagger h + a$, or of what else is read, (..., outputs) from states (..., neurons)."""
        if self.decoders is None:
            raise InputError("decoders", None, "a network with a readout", problem="none")
        states = states - self.bias if self.reads == "unbiased" else states
        y = (states if self.reads == "state" else self.rate(states)) @ self.decoders
        return y if self.offset is None else y + self.offset

    def outputs(self, inputs: Tensor) -> Tensor:
        r"""$y_t$, (batch, time, outputs) from inputs (batch, time, channels), without storing the states."""
        seen = self.reads == "rates" or self.form == "rate"
        if seen and self.decoders is not None and (spanned := self.spanned(inputs, self.decoders)):
            y = stacked((read for _, read in spanned[1]), inputs.shape[1])
            return y if self.offset is None else y + self.offset
        walks = map(self._walk, self.groups(inputs))
        return torch.cat([stacked((self.readout(h) for _, h in walk), inputs.shape[1]) for walk in walks])

    def outputs_of(self, several: Sequence[Tensor]) -> list[Tensor]:
        """`outputs` of each; those that are as long together, a step of more sequences takes hardly longer."""
        if self.noise:  # which each draws for itself
            return [self.outputs(inputs) for inputs in several]
        found: dict[int, Iterator[Tensor]] = {}
        for steps in {inputs.shape[1] for inputs in several}:
            alike = [inputs for inputs in several if inputs.shape[1] == steps]
            found[steps] = iter(self.outputs(torch.cat(alike)).split([len(inputs) for inputs in alike]))
        return [next(found[inputs.shape[1]]) for inputs in several]

    @property
    def alike(self) -> bool:
        """Whether all neurons are known to have the same activation, which some of them can be computed with."""
        return self.f.name in ACTIVATIONS.parts and not any(values.ndim for values in self.f.values().values())

    def groups(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Sequences in groups whose states fit into the cache; with noise, which all of them draw at once, in one."""
        return (inputs,) if self.noise else memory.in_groups(inputs, self.neurons)

    def spanned(
        self, inputs: Tensor, read: Tensor | None = None
    ) -> tuple[Tensor, Iterator[tuple[Tensor, Tensor]]] | None:
        r"""B (neurons, k), and $c_t$ (batch, k) with $\nu_t = B c_t$ and what (neurons, outputs) read, step by step.

        For $W = L R^\dagger$ without leak and noise, else None: $\nu_t = L\kappa_{t-1} + U x_t$, $h_t = f(\nu_t + b)$,
        $\kappa_t = R^\dagger h_t$, by neurons whose states fit into the cache: they are never all there.
        """
        factors = self.recurrent.factors()
        if factors is None or self._leaky or self.noise:
            return None
        left, right = factors
        read = right[:, :0] if read is None else read
        enters, leaves = torch.cat([left.T, self.input_weights.T]).T, torch.cat([right.T, read.T]).T
        size = max(1, memory.TOGETHER // (len(inputs) or 1)) if self.alike else self.neurons
        blocks = list(zip(*(part.split(size) for part in (enters, self.bias, leaves)), strict=True))

        def steps() -> Iterator[tuple[Tensor, Tensor]]:
            left_by = (self.rate(self.start(1)) @ leaves).expand(len(inputs), -1)
            for x in inputs.to(self.input_weights).unbind(1):
                c = torch.cat([left_by[:, : left.shape[1]], x], 1)
                left_by = torch.zeros_like(left_by)
                for enter, bias, leave in blocks:
                    left_by.addmm_(self.f(torch.addmm(bias, c, enter.T)), leave)
                yield c, left_by[:, left.shape[1] :]

        return enters, steps()
