r"""Figures of integrators from arrays.

Each function draws into matplotlib's axes `axis`, or into the current axes of pyplot by default, and returns the
axes, so that several functions can draw into one figure. Arrays may be of torch or of NumPy. The colours can be told
apart with every kind of colour vision.

>>> import matplotlib.pyplot as plt
>>> net = rni.design(rni.Integration([0.95, 0.9]), neurons=50).network
>>> x = rni.inputs.bursts(1, 200, channels=2, generator=torch.Generator().manual_seed(0)).double()
>>> figure, (left, right) = plt.subplots(1, 2)
>>> rni.plot.outputs(net.outputs(x)[0], net.task.targets(x)[0], left).get_xlabel()
'time step $t$'
>>> rni.plot.spectrum(rni.weights.svd(net.recurrent).values, leading=2, axis=right).get_xlabel()
'$k$'
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from rni.core.arrays import require_shape
from rni.core.errors import InputError
from rni.plots.style import CHANNELS, DIVERGING, POPULATIONS, SEQUENTIAL, TARGET, legend, plain

__all__ = ["learning_curve", "manifold", "outputs", "populations", "selectivity", "spectrum", "weights"]

NAMES = tuple(POPULATIONS)  # of the populations 0, 1, ...


def outputs(outputs: Any, targets: Any, axis: Axes | None = None) -> Axes:
    r"""Draw outputs $y_{c,t}$ over the integrals $\bar y_{c,t}$.

    Parameters
    ----------
    outputs, targets : array (time, channels) or (time,)
        The outputs, and the integrals that they should be.
    axis : Axes, optional
        The axes to draw into.

    Examples
    --------
    >>> t = np.arange(100)
    >>> rni.plot.outputs(0.9**t, 0.9**t).get_ylabel()
    '$y_c$, $\\bar{y}_c$'
    """
    y, wanted = _columns("outputs", outputs), _columns("targets", targets)
    require_shape("targets", wanted, *y.shape)
    axis = _axis(axis)
    for c in range(y.shape[1]):
        axis.plot(wanted[:, c], color=colour(c), alpha=0.35, linewidth=4, label="integral, broad" if c == 0 else None)
        axis.plot(y[:, c], color=colour(c), linewidth=1.2, label=f"output {c + 1}" if y.shape[1] > 1 else "output")
    axis.set(xlabel="time step $t$", ylabel=r"$y_c$, $\bar{y}_c$")
    legend(axis)
    return axis


def manifold(coordinates: Any, integrals: Any, axis: Axes | None = None, *, channel: int = 0) -> Axes:
    r"""Draw currents in the coordinates $\alpha$ of their manifold, coloured by the integral $\bar y_c$ of one channel.

    The first two coordinates are drawn, or three in axes with projection="3d". A single coordinate is drawn against the
    integral.

    Parameters
    ----------
    coordinates : array (samples, D)
        The coordinates, for example from `rni.analysis.current_coordinates`.
    integrals : array (samples, channels)
        The integrals.
    axis : Axes, optional
        The axes to draw into.
    channel : int
        The channel c.

    Examples
    --------
    >>> y = np.random.default_rng(0).standard_normal((500, 2))
    >>> rni.plot.manifold(y @ [[1, 0.5], [0.2, 1]], y, channel=1).get_ylabel()
    '$\\alpha_2$'
    """
    alpha, y = _columns("coordinates", coordinates), _columns("integrals", integrals)
    require_shape("integrals", y, len(alpha), "channels")
    if not 0 <= channel < y.shape[1]:
        raise InputError("channel", channel, f"from 0 to {y.shape[1] - 1}")
    axis = _axis(axis)
    if alpha.shape[1] == 1:
        axis.plot(y[:, channel], alpha[:, 0], ".", color=colour(channel), markersize=3, rasterized=True)
        axis.set(xlabel=r"$\bar{y}$", ylabel=r"$\alpha$")
        return axis
    shown = 3 if axis.name == "3d" and alpha.shape[1] > 2 else 2
    points = axis.scatter(*alpha[:, :shown].T, c=y[:, channel], s=4, cmap=SEQUENTIAL, rasterized=True)
    axis.set(xlabel=r"$\alpha_1$", ylabel=r"$\alpha_2$")
    axis.figure.colorbar(points, ax=axis, label=rf"$\bar{{y}}_{channel + 1}$")
    return axis


def spectrum(values: Any, leading: int = 0, axis: Axes | None = None) -> Axes:
    r"""Draw the singular values $\sigma_k$ of W.

    Parameters
    ----------
    values : array (k,)
        The singular values, in descending order.
    leading : int
        The number of leading values that are marked.
    axis : Axes, optional
        The axes to draw into.

    Examples
    --------
    >>> w = torch.randn(100, 100) / 10 + 5 * torch.ones(100, 100) / 100
    >>> rni.plot.spectrum(torch.linalg.svdvals(w), leading=1).get_ylabel()
    'singular value $\\sigma_k$ of $W$'
    """
    sigma = _array("values", values, 1)
    axis = _axis(axis)
    k = np.arange(1, len(sigma) + 1)
    axis.plot(k, sigma, ".", color=TARGET)
    axis.plot(k[:leading], sigma[:leading], "o", color=CHANNELS[1])
    axis.set(xlabel="$k$", ylabel=r"singular value $\sigma_k$ of $W$", ylim=(0, None))
    return axis


def selectivity(vectors: Any, axis: Axes | None = None) -> Axes:
    r"""Draw the selectivity vectors $s_i$ of the neurons for the first two channels, or a histogram for one channel.

    Parameters
    ----------
    vectors : array (neurons, channels)
        The vectors.
    axis : Axes, optional
        The axes to draw into.

    Examples
    --------
    >>> s = torch.randn(300, 2, generator=torch.Generator().manual_seed(0))
    >>> rni.plot.selectivity(s).get_xlabel()
    '$s_{i,1}$'
    """
    s = _columns("vectors", vectors)
    axis = _axis(axis)
    if s.shape[1] == 1:
        span = np.abs(s).max() or 1.0
        axis.hist(s[:, 0], bins=40, range=(-span, span), color=CHANNELS[0])
        axis.set(xlabel="$s_i$", ylabel="neurons")
        return axis
    axis.plot(s[:, 0], s[:, 1], ".", color=CHANNELS[0], markersize=3, rasterized=True)
    axis.set(xlabel="$s_{i,1}$", ylabel="$s_{i,2}$")
    axis.axis("equal")
    return axis


def populations(vectors: Any, members: Any, axis: Axes | None = None) -> Axes:
    r"""Draw each neuron's activity per unit of positive and of negative integral, $(L_+)_i$ and $(L_-)_i$.

    Parameters
    ----------
    vectors : array (2, neurons)
        $L_+$ and $L_-$, from `rni.analysis.population_vectors`.
    members : array (neurons,)
        The population of each neuron, from `rni.analysis.populations`.
    axis : Axes, optional
        The axes to draw into.

    Examples
    --------
    >>> found = rni.analysis.PopulationVectors(torch.tensor([1.0, 0.0, 0.5]), torch.tensor([0.0, 1.0, 0.4]))
    >>> axis = rni.plot.populations(found, rni.analysis.populations(found))
    >>> [text.get_text() for text in axis.get_legend().get_texts()]
    ['+  (33.3 %)', '-  (33.3 %)', 'shared  (33.3 %)', 'null  (0.0 %)']
    """
    both = np.stack([_array("vectors", vector, 1) for vector in vectors])
    own = _array("members", members, 1)
    require_shape("vectors", both, 2, len(own))
    axis = _axis(axis)
    for k, name in enumerate(NAMES):
        label = f"{name}  ({100 * np.mean(own == k):.1f} %)"
        axis.plot(*both[:, own == k], ".", color=POPULATIONS[name], label=label, rasterized=True)
    axis.set(xlabel="$(L_+)_i$", ylabel="$(L_-)_i$")
    legend(axis)
    return axis


def learning_curve(losses: Any, silent: float | None = None, axis: Axes | None = None) -> Axes:
    """Draw the loss at every step of a training.

    Parameters
    ----------
    losses : array (steps,)
        The losses, as `rni.train` returns them.
    silent : float, optional
        The loss of a network whose outputs are 0, which is drawn as a line.
    axis : Axes, optional
        The axes to draw into.

    Examples
    --------
    >>> rni.plot.learning_curve([3.0, 1.0, 0.3, 0.1], silent=3.2).get_yscale()
    'log'
    """
    values = _array("losses", losses, 1)
    axis = _axis(axis)
    axis.plot(np.arange(1, len(values) + 1), values, color=CHANNELS[0], linewidth=1)
    if silent is not None:
        axis.axhline(silent, color=TARGET, linestyle="--", label="silent network")
        legend(axis)
    axis.set(xscale="log", yscale="log", xlabel="step", ylabel="loss")
    return axis


def weights(recurrent: Any, members: Any, axis: Axes | None = None) -> Axes:
    r"""Draw $W_{ij}$ with the neurons sorted by population. The colours end at the 99th percentile.

    Parameters
    ----------
    recurrent : array (neurons, neurons)
        W.
    members : array (neurons,)
        The population of each neuron, from `rni.analysis.populations`, or other labels from 0 on.
    axis : Axes, optional
        The axes to draw into.

    Examples
    --------
    >>> net = rni.design(rni.Integration(0.9), neurons=30).network
    >>> rni.plot.weights(net.recurrent.matrix(), net.decoders[:, 0] < 0).get_xlabel()
    'from neuron $j$'
    """
    w, own = _array("recurrent", recurrent, 2), _array("members", members, 1).astype(int)
    require_shape("recurrent", w, len(own), len(own))
    axis = _axis(axis)
    order = own.argsort(kind="stable")
    reach = np.percentile(np.abs(w), 99) or 1.0
    image = axis.imshow(w[np.ix_(order, order)], cmap=DIVERGING, vmin=-reach, vmax=reach, interpolation="nearest")
    labels, starts = np.unique(own[order], return_index=True)
    for start in starts[1:]:
        axis.axhline(start - 0.5, color="black", linewidth=0.6)
        axis.axvline(start - 0.5, color="black", linewidth=0.6)
    middles = (starts + np.append(starts[1:], len(own)) - 1) / 2
    names = [NAMES[k] if 0 <= k < len(NAMES) else str(k) for k in labels]
    axis.set(xlabel="from neuron $j$", ylabel="to neuron $i$", xticks=middles, yticks=middles)
    axis.set_xticklabels(names)
    axis.set_yticklabels(names)
    axis.figure.colorbar(image, ax=axis, label="$W_{ij}$")
    return axis


def colour(channel: int) -> str:
    """Return the colour of a channel, the same in all figures."""
    return CHANNELS[channel % len(CHANNELS)]


def _axis(given: Axes | None) -> Axes:
    """Return the given axes, or the current ones of pyplot."""
    if given is not None:
        return given
    from matplotlib import pyplot

    axis = pyplot.gca()
    plain(axis)
    return axis


def _array(name: str, values: Any, dimensions: int) -> np.ndarray:
    """Return numbers of Python, NumPy or torch as an array, also those of tensors that require a gradient."""
    try:
        array = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
        if array.ndim != dimensions or array.dtype.kind not in "fiub" or not array.size:
            raise TypeError
    except (TypeError, ValueError):
        found = f"shape {tuple(np.shape(values))}" if hasattr(values, "shape") else type(values).__name__
        raise InputError(name, values, f"{dimensions} dimensions of numbers", problem=found) from None
    return array


def _columns(name: str, values: Any) -> np.ndarray:
    """Return an array (samples, columns), from an array (samples,) as well."""
    one = getattr(values, "ndim", None) == 1 or (not hasattr(values, "ndim") and np.ndim(values) == 1)
    return _array(name, values, 1)[:, None] if one else _array(name, values, 2)
