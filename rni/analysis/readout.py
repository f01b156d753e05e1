"""The readout of a network: its own, corrected for a constant, an order or a sign; or one fitted to the integrals."""

import math
from typing import Literal, NamedTuple

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from rni.analysis.decays import Fit, fit_integrals
from rni.analysis.verdict import TOLERANCE, percent
from rni.networks.accuracy import error_by_duration
from rni.networks.vanilla import VanillaRNN
from rni.tasks.integration import Integration

SETTLED = 10  # times 1 / leak, after which outputs without inputs are at rest
REST = 200  # steps without inputs over which outputs at rest are measured


class Readout(NamedTuple):
    """A network with one output for each channel, and the integrals closest to its signals.

    Attributes
    ----------
    net : VanillaRNN
        The network with this readout.
    task : Integration
        Its task, or a task with the effective decays if none is known.
    source : str
        "given" if the readout is the network's own, or "fitted".
    signals : Tensor (trials, time, k)
        The outputs, each of size 1, or the currents if the readout was fitted.
    fit : Fit
        The integrals in the signals.
    scales, offset : tuple of float (channels,), or None
        For the network's own readout: the scales of the integrals in the outputs, and the outputs at rest, which `net`
        no longer has.
    notes : tuple of str
        What a user should know about the readout.
    """

    net: VanillaRNN
    task: Integration
    source: Literal["given", "fitted"]
    signals: Tensor
    fit: Fit
    scales: tuple[float, ...] | None = None
    offset: tuple[float, ...] | None = None
    notes: tuple[str, ...] = ()


def fitted_readout(net: VanillaRNN, inputs: Tensor, signals: Tensor, activity: Tensor, held: Tensor) -> Readout:
    """Fit a readout to a network without an output for each channel.

    Parameters
    ----------
    net : VanillaRNN
        The network.
    inputs : Tensor (trials, time, channels)
        The inputs.
    signals : Tensor (trials, time, k)
        The coordinates of its currents, in which decays are looked for.
    activity : Tensor (trials, time, held)
        The activity of the neurons `held`, which are read.
    held : Tensor (held,)
        The indices of these neurons.
    """
    fit = fit_integrals(signals, inputs)
    task = net.task or Integration(fit.decays.tolist())
    fitted, offset = fit_readout(activity.flatten(0, 1), task.targets(inputs.double()).flatten(0, 1))
    notes = ()
    if net.decoders is not None:
        outputs = f"{net.decoders.shape[1]} outputs for {net.channels} channels"
        notes = (f"its readout has {outputs}: another was fitted",)
    decoders = fitted.new_zeros(net.neurons, net.channels).index_copy(0, held, fitted)
    net = net.replace(decoders=decoders, offset=offset, reads="rates")
    return Readout(net, task, "fitted", signals, fit, notes=notes)


def given_readout(net: VanillaRNN, inputs: Tensor) -> Readout:
    """Examine the readout of a network that has an output for each channel.

    Outputs at rest are taken away. If no task is known, outputs are put into the order of the channels.

    Parameters
    ----------
    net : VanillaRNN
        The network, without process noise.
    inputs : Tensor (trials, time, channels)
        The inputs.
    """
    assert net.decoders is not None
    # The outputs without inputs. An output that changes by more than 10 % drifts, which is an error and no constant.
    settled = math.ceil(SETTLED / float(torch.as_tensor(net.leak).min()))
    silent = net.outputs(net.input_weights.new_zeros(1, settled + REST, net.channels))[0, settled:]
    rest = silent.mean(0)
    rest = torch.where((silent - rest).abs().amax(0) <= 0.1 * rest.abs(), rest, 0.0)
    decoders, offset = net.decoders, (0 if net.offset is None else net.offset) - rest
    net = net.replace(offset=offset)

    outputs = net.outputs(inputs).double()
    size = outputs.flatten(0, 1).std(0)
    size[size == 0] = 1
    signals = outputs / size  # so that each output counts the same
    fit = fit_integrals(signals, inputs)
    notes = []
    if bool((rest.abs() > 0.01 * outputs.square().mean((0, 1)).sqrt()).any()):
        shown = "  ".join(f"{value:.4g}" for value in rest.tolist())
        notes.append(f"outputs at rest: {shown}, taken away from the outputs before they are judged")

    # Outputs in another order than the channels, or of another sign.
    integrals = fit.integrals(inputs) if net.task is None else net.task.targets(inputs.double())
    order, signs = matching(outputs, integrals)
    channels = " ".join(str(k + 1) for k in order.tolist())
    in_order = not bool(order.diff().lt(0).any())
    if net.task is None and not in_order:
        notes.append(f"outputs taken in the order {channels}, in which they are integrals of the channels")
        net = net.replace(decoders=decoders[:, order], offset=offset[order])
        signals, size, rest = signals[..., order], size[order], rest[order]
        fit = fit._replace(gains=fit.gains[order])
    if net.task is not None and not (in_order and bool((signs > 0).all())):
        error = error_by_duration(outputs[..., order] * signs, integrals)[-1]
        if bool((error <= TOLERANCE).all()):
            signed, largest = " ".join("+" if sign > 0 else "-" for sign in signs), percent(float(error.max()))
            would_be = f"would be the integrals: relative error {largest}"
            notes.append(f"outputs in the order {channels}, signs {signed}, {would_be}")

    scales = tuple((fit.gains * size[:, None]).diagonal().tolist())
    task = net.task or Integration(fit.decays.tolist(), [scale or 1.0 for scale in scales])
    return Readout(net, task, "given", signals, fit, scales, tuple(rest.tolist()), tuple(notes))


def matching(outputs: Tensor, integrals: Tensor) -> tuple[Tensor, Tensor]:
    """Match outputs to integrals by their correlations.

    Parameters
    ----------
    outputs, integrals : Tensor (..., channels)
        The outputs and the integrals.

    Returns
    -------
    tuple of Tensor (channels,), (channels,)
        The output for each channel's integral, and the sign of their correlation.
    """
    y, z = (values.double().flatten(0, -2) for values in (outputs, integrals))
    y, z = y - y.mean(0), z - z.mean(0)
    correlation = ((y / y.norm(dim=0)).T @ (z / z.norm(dim=0))).nan_to_num()
    channels, order = linear_sum_assignment(-correlation.abs().T.numpy())
    return torch.from_numpy(order), torch.where(correlation[order, channels] < 0, -1.0, 1.0).double()


def fit_readout(activity: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    r"""Fit $\bar y \simeq D^\dagger h + a$ by least squares.

    A ridge of 1e-8 of the mean variance makes the solution unique for activity on a manifold of fewer dimensions than
    neurons.

    Parameters
    ----------
    activity : Tensor (samples, neurons)
        The activity h.
    targets : Tensor (samples, channels)
        The targets.

    Returns
    -------
    tuple of Tensor (neurons, channels), (channels,)
        The decoders D and the offset a.

    Examples
    --------
    >>> h = torch.randn(500, 10, generator=torch.Generator().manual_seed(0)).double()
    >>> decoders, offset = rni.analysis.fit_readout(h, h[:, :1] + 3)
    >>> round(offset.item(), 4), decoders[:2, 0].round(decimals=4).abs().tolist()
    (3.0, [1.0, 0.0])
    """
    h, y = activity.double(), targets.double()
    h_mean, y_mean = h.mean(0), y.mean(0)
    gram = (h - h_mean).T @ (h - h_mean)
    size = float(gram.trace()) / len(gram) or 1.0
    ridge = 1e-8 * size * torch.eye(len(gram), dtype=gram.dtype)
    decoders = torch.linalg.solve(gram + ridge, (h - h_mean).T @ (y - y_mean))
    return decoders, y_mean - h_mean @ decoders
