"""The readout of a network: its own, right but for a constant, an order or a sign; or one fitted to the integrals."""

import math
from dataclasses import replace
from typing import Literal, NamedTuple

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from rni.analysis.effective import Fit, fit_integrals, fit_readout
from rni.analysis.verdict import TOLERANCE, percent
from rni.networks.accuracy import error_by_duration
from rni.networks.vanilla import VanillaRNN
from rni.tasks.integration import Integration

SETTLED = 10  # times that of the leak, after which a constant is constant
REST = 200  # steps without inputs, over which outputs are at rest


class Readout(NamedTuple):
    """A network with an output for each channel, its task, and the integrals closest to its signals.

    signals (trials, time, k): the outputs, each of size 1, or the currents where the readout was fitted. scales: of
    the integrals in the outputs; offset: the outputs at rest, which the network no longer has; both (channels,). What
    is not the network's own is fitted. notes: what else there is to say.
    """

    net: VanillaRNN
    task: Integration
    source: Literal["given", "fitted"]
    signals: Tensor
    fit: Fit
    scales: tuple[float, ...] | None = None
    offset: tuple[float, ...] | None = None
    notes: tuple[str, ...] = ()


def reads(net: VanillaRNN) -> bool:
    """Whether it has an output for each channel."""
    return net.decoders is not None and net.decoders.shape[1] == net.channels


def fitted_readout(net: VanillaRNN, inputs: Tensor, signals: Tensor, activity: Tensor, held: Tensor) -> Readout:
    """For a network without a readout of its own, from the activity (trials, time, held) of the neurons `held`."""
    fit = fit_integrals(signals, inputs)
    task = net.task or Integration(fit.decays.tolist())
    fitted, offset = fit_readout(activity.flatten(0, 1), task.targets(inputs.double()).flatten(0, 1))
    notes = ()
    if net.decoders is not None:
        outputs = f"{net.decoders.shape[1]} outputs for {net.channels} channels"
        notes = (f"its readout has {outputs}: another was fitted",)
    decoders = fitted.new_zeros(net.neurons, net.channels).index_copy(0, held, fitted)
    net = replace(net, decoders=decoders, offset=offset, reads="rates")
    return Readout(net, task, "fitted", signals, fit, notes=notes)


def given_readout(net: VanillaRNN, inputs: Tensor) -> Readout:
    """Of a network that `reads`: without its outputs at rest, and in the order of the channels if it has no task."""
    assert net.decoders is not None
    rest = offset_at_rest(net, REST)
    decoders, offset = net.decoders, (0 if net.offset is None else net.offset) - rest
    net = replace(net, offset=offset)
    outputs = net.outputs(inputs).double()
    size = outputs.flatten(0, 1).std(0)
    size[size == 0] = 1
    signals = outputs / size  # each output counts alike
    fit = fit_integrals(signals, inputs)
    notes = _at_rest(rest, outputs)
    if net.task is not None:
        notes += _turned(outputs, net.task.targets(inputs.double()))
    elif not _sorted(order := matching(outputs, fit.integrals(inputs))[0]):
        notes += (f"outputs taken in the order {_counted(order)}, in which they are integrals of the channels",)
        net = replace(net, decoders=decoders[:, order], offset=offset[order])
        signals, fit, size, rest = signals[..., order], fit._replace(gains=fit.gains[order]), size[order], rest[order]
    scales = tuple((fit.gains * size[:, None]).diagonal().tolist())
    task = net.task or Integration(fit.decays.tolist(), [scale or 1.0 for scale in scales])
    return Readout(net, task, "given", signals, fit, scales, tuple(rest.tolist()), notes)


def offset_at_rest(net: VanillaRNN, steps: int) -> Tensor:
    """The outputs (outputs,) without inputs, where they stay the same to 10 %; 0 where they drift: that is an error."""
    settled = math.ceil(SETTLED / float(torch.as_tensor(net.leak).min()))
    y = replace(net, noise=0.0).outputs(net.input_weights.new_zeros(1, steps + settled, net.channels))[0, settled:]
    offset = y.mean(0)
    return torch.where((y - offset).abs().amax(0) <= 0.1 * offset.abs(), offset, 0.0)


def matching(outputs: Tensor, integrals: Tensor) -> tuple[Tensor, Tensor]:
    """Which output (channels,) goes best with each channel's integral, and its sign, by correlation.

    outputs, integrals: (..., channels).
    """
    y, z = (values.double().flatten(0, -2) for values in (outputs, integrals))
    y, z = y - y.mean(0), z - z.mean(0)
    correlation = ((y / y.norm(dim=0)).T @ (z / z.norm(dim=0))).nan_to_num()
    channels, order = linear_sum_assignment(-correlation.abs().T.numpy())
    return torch.from_numpy(order), torch.where(correlation[order, channels] < 0, -1.0, 1.0).double()


def _at_rest(rest: Tensor, outputs: Tensor) -> tuple[str, ...]:
    """A note where the constant is more than 1 % of the outputs' size."""
    if not bool((rest.abs() > 0.01 * outputs.square().mean((0, 1)).sqrt()).any()):
        return ()
    shown = "  ".join(f"{value:.4g}" for value in rest.tolist())
    return (f"outputs at rest: {shown}, taken away from the outputs before they are judged",)


def _turned(outputs: Tensor, integrals: Tensor) -> tuple[str, ...]:
    """A note where the outputs would be the integrals in another order or with other signs."""
    order, signs = matching(outputs, integrals)
    error = error_by_duration(outputs[..., order] * signs, integrals)[-1]
    if (_sorted(order) and bool((signs > 0).all())) or not bool((error <= TOLERANCE).all()):
        return ()
    signed, found = " ".join("+" if sign > 0 else "-" for sign in signs), percent(float(error.max()))
    return (f"outputs in the order {_counted(order)}, signs {signed}, would be the integrals: relative error {found}",)


def _sorted(order: Tensor) -> bool:
    return order.tolist() == list(range(len(order)))


def _counted(order: Tensor) -> str:
    return " ".join(str(k + 1) for k in order.tolist())
