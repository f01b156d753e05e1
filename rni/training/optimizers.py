"""Gradient descent, Adam and torch's optimizers on factored gradients."""

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from rni.core.errors import InputError
from rni.losses import Gradient, Loss, Schedule
from rni.networks.network import Network


@runtime_checkable
class Optimizer(Protocol):
    """One step on the trained parameters, at a given learning rate; its memory as named tensors.

    `defaults`: learning rate and schedule for a loss and a network, where they are left open.
    """

    def defaults(self, loss: Loss, net: Network) -> tuple[float, Schedule]: ...

    def step(self, net: Network, gradient: Gradient, learning_rate: float) -> None: ...

    def state(self) -> dict[str, Tensor]: ...

    def restore(self, state: dict[str, Tensor]) -> None: ...


class GradientDescent:
    r"""$W \leftarrow W - \eta\,\partial L/\partial W$, and the same for trained vectors.

    >>> task = rni.Integration(0.9)
    >>> net = rni.Network(task, *rni.vectors.independent(40, 1), torch.zeros(40, 40))
    >>> losses = rni.train(net, rni.BatchLoss(task), optimizer=rni.training.GradientDescent(), steps=100)
    >>> losses[-1] < losses[0]
    True
    """

    closed_form = True

    def defaults(self, loss: Loss, net: Network) -> tuple[float, Schedule]:
        """The outputs of one step have the leak as a factor, and their errors' curvature its square."""
        return loss.default_learning_rate() / net.leak**2, loss.default_schedule

    @torch.no_grad()
    def step(self, net: Network, gradient: Gradient, learning_rate: float) -> None:
        if len(gradient.left):
            net.recurrent.descend_(gradient.left, gradient.right, learning_rate)
        for _, parameter, slope in _beside_recurrent(net, gradient):
            parameter.sub_(slope, alpha=learning_rate)

    def state(self) -> dict[str, Tensor]:
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        del state


class _ElementWise:
    """What an optimizer with a memory for each parameter does whatever its rule. Its steps fill W's bulk.

    The `state` is that of the parameters in the last step, and what is restored goes to those of the next one.
    """

    _name: str

    def __init__(self):
        self._last: dict[str, nn.Parameter] = {}
        self._restored: dict[str, Tensor] | None = None

    def step(self, net: Network, gradient: Gradient, learning_rate: float) -> None:
        trained = {name: (parameter, slope) for name, parameter, slope in _beside_recurrent(net, gradient)}
        if len(gradient.left):
            w = net.recurrent.matrix()
            if not isinstance(w, nn.Parameter):
                found = type(net.recurrent).__name__
                raise InputError(f"weights: {found}; allowed: Dense or Dale for training W with {self._name}")
            trained["recurrent"] = (w, gradient.recurrent())
        self._last = {name: parameter for name, (parameter, _) in trained.items()}
        self._check()
        for parameter, _ in trained.values():
            if not parameter.is_contiguous():  # torch's fused step takes all memory for row-major
                parameter.data = parameter.data.contiguous()
        self._take_restored()
        self.move([(parameter, slope.contiguous()) for parameter, slope in trained.values()], learning_rate)
        if "recurrent" in trained:
            net.recurrent.project_()

    def _check(self) -> None:
        """Refuse, before anything moves, what can not be trained."""

    def move(self, trained: list[tuple[nn.Parameter, Tensor]], learning_rate: float) -> None:
        """Any parameters, along their slopes."""
        raise NotImplementedError

    @property
    def _memory(self) -> MutableMapping[Any, dict[str, Any]]:
        """By parameter."""
        raise NotImplementedError

    def state(self) -> dict[str, Tensor]:
        if self._restored is not None:
            return self._restored
        slots = {name: self._memory[parameter] for name, parameter in self._last.items()}
        tensors = ((f"{name}.{key}", value) for name, entry in slots.items() for key, value in entry.items())
        return {name: value for name, value in tensors if isinstance(value, Tensor)}

    def restore(self, state: dict[str, Tensor]) -> None:
        self._restored = dict(state)

    def _take_restored(self) -> None:
        if self._restored is None:
            return
        for name, parameter in self._last.items():
            own = {key.rpartition(".")[2]: v for key, v in self._restored.items() if key.rpartition(".")[0] == name}
            self._memory[parameter] = {key: value.to(parameter.device) for key, value in own.items()}
        self._restored = None


class Torch(_ElementWise):
    """Any optimizer of `torch.optim` whose steps need no closure: a class, or an instance made for what is trained.

    Steps are element-wise and fill W's bulk. The rate is that of the first group of parameters, those of others stay
    in proportion. A class makes one for whatever is trained, each parameter with a memory of its own: it may train
    several networks, or other parts of one.

    >>> task = rni.Integration(0.9)
    >>> net = rni.Network(task, *rni.vectors.independent(40, 1), torch.zeros(40, 40))
    >>> momentum = rni.training.Torch(torch.optim.SGD, momentum=0.5)
    >>> losses = rni.train(net, rni.BatchLoss(task), optimizer=momentum, learning_rate=0.01, steps=100)
    >>> losses[-1] < losses[0]
    True
    """

    def __init__(self, optimizer: torch.optim.Optimizer | Callable[..., torch.optim.Optimizer], **options: Any):
        super().__init__()
        self._bound = isinstance(optimizer, torch.optim.Optimizer)
        if not isinstance(optimizer, torch.optim.Optimizer):
            optimizer = optimizer([nn.Parameter(torch.empty(0, 0))], **options)  # torch refuses to have none
        self._torch, self._name = optimizer, type(optimizer).__name__
        if isinstance(optimizer, torch.optim.LBFGS | torch.optim.SparseAdam):
            raise InputError(f"optimizer: {self._name}; allowed: one that steps on dense gradients, without a closure")
        self._rate = float(optimizer.param_groups[0]["lr"])

    @property
    def _memory(self) -> MutableMapping[Any, dict[str, Any]]:
        return self._torch.state

    def defaults(self, loss: Loss, net: Network) -> tuple[float, Schedule]:
        return self._rate, "constant"

    def move(self, trained: list[tuple[nn.Parameter, Tensor]], learning_rate: float) -> None:
        groups = self._groups()
        self._torch.zero_grad()
        for parameter, slope in trained:
            parameter.grad = slope
        own = [group["lr"] for group in groups]
        for group, rate in zip(groups, own, strict=True):
            group["lr"] = rate * (learning_rate / self._rate)
        self._torch.step()
        for group, rate in zip(groups, own, strict=True):
            group["lr"] = rate
        self._torch.zero_grad()

    def _check(self) -> None:
        self._groups()

    def _groups(self) -> list[dict[str, Any]]:
        """Of what is trained; refuses an instance that was not made for all of it."""
        groups = self._torch.param_groups
        if not self._bound:
            groups[0]["params"] = list(self._last.values())
        held = {id(parameter) for group in groups for parameter in group["params"]}
        if missing := [name for name, parameter in self._last.items() if id(parameter) not in held]:
            found = f"{self._name} without {', '.join(missing)}"
            raise InputError(f"optimizer: {found}; allowed: one made for all that is trained, or the class")
        return groups


class Adam(_ElementWise):
    r"""Adam (Kingma & Ba 2015), torch's fused step with its default moments, to the bits of `torch.optim.Adam`.

    $m \leftarrow .9\,m + .1\,g$, $v \leftarrow .999\,v + .001\,g^2$ and, at step k,
    $w \leftarrow w - \eta\,\frac{m}{1 - .9^k} / \big(\sqrt{v / (1 - .999^k)} + 10^{-8}\big)$, by elements. That class
    would load torch's compiler on its first step, which takes seconds, and up to a third of a step of 300 neurons.

    >>> task = rni.Integration(0.9)
    >>> net = rni.Network(task, *rni.vectors.independent(40, 1), torch.zeros(40, 40))
    >>> losses = rni.train(net, rni.BatchLoss(task), optimizer=rni.training.Adam(), steps=200)
    >>> losses[-1] < losses[0]
    True
    """

    _name = "Adam"
    closed_form = True

    def __init__(self):
        super().__init__()
        self._moments: dict[nn.Parameter, dict[str, Tensor]] = {}

    @property
    def _memory(self) -> MutableMapping[Any, dict[str, Any]]:
        return self._moments

    def defaults(self, loss: Loss, net: Network) -> tuple[float, Schedule]:
        """Each element of W, of the order 1 / n, moves by up to the rate; the cosine takes the noise out at the end."""
        return 0.6 / net.neurons, "cosine"

    @torch.no_grad()
    def move(self, trained: list[tuple[nn.Parameter, Tensor]], learning_rate: float) -> None:
        parameters, slopes = map(list, zip(*trained, strict=True))
        memories = [self._moments.get(parameter) or self._begun(parameter) for parameter in parameters]
        means, squares, steps = ([memory[name] for memory in memories] for name in ("exp_avg", "exp_avg_sq", "step"))
        for step in steps:
            step += 1
        options = {"lr": learning_rate, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0}
        options |= {"amsgrad": False, "maximize": False}
        torch.ops.aten._fused_adam_(parameters, slopes, means, squares, [], steps, **options)

    def _begun(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        zeros = {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
        step = torch.zeros((), dtype=torch.float32, device=parameter.device)  # as the fused step reads it
        self._moments[parameter] = {"step": step, **zeros}
        return self._moments[parameter]


OPTIMIZERS: dict[str, type[GradientDescent] | type[Adam]] = {"sgd": GradientDescent, "adam": Adam}


def make(optimizer: Optimizer | torch.optim.Optimizer | type[torch.optim.Optimizer] | str | None) -> Optimizer:
    """The optimizer itself, one by its name, or torch's; gradient descent by default."""
    if optimizer is None:
        return GradientDescent()
    if isinstance(optimizer, str) and optimizer in OPTIMIZERS:
        return OPTIMIZERS[optimizer]()
    if isinstance(optimizer, torch.optim.Optimizer) or (
        isinstance(optimizer, type) and issubclass(optimizer, torch.optim.Optimizer)
    ):
        return Torch(optimizer)
    if isinstance(optimizer, str | type) or not isinstance(optimizer, Optimizer):
        named = ", ".join(map(repr, OPTIMIZERS))
        raise InputError(f"optimizer: {optimizer!r}; allowed: {named}, an optimizer of rni.training or of torch.optim")
    return optimizer


def _beside_recurrent(net: Network, gradient: Gradient) -> Iterator[tuple[str, nn.Parameter, Tensor]]:
    """Name, parameter and slope of whatever is trained beside W."""
    for name, parameter in (("decoders", net.decoders), ("encoders", net.encoders)):
        slope = getattr(gradient, name)
        if slope is not None:
            yield name, parameter, slope
    for name, slope in gradient.activation.items():
        yield f"activation.{name}", net.f.get_parameter(name), slope
