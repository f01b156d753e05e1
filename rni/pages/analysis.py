"""The page of an analysis, with figures."""

import base64
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from rni import __version__
from rni.analysis.behaviour import Dynamics
from rni.analysis.noisy import Noisy
from rni.analysis.recorded import RecordingAnalysis
from rni.analysis.results import Analysis
from rni.analysis.stationary import Point
from rni.analysis.verdict import GOOD, TOLERANCE, percent
from rni.core.atomic import write_atomically
from rni.core.errors import InputError, path_of
from rni.pages.template import number, template
from rni.plots import plot
from rni.plots.style import CHANNELS, TARGET, described, legend, panels

POINTS = 3000  # largest number of points in a scatter plot
TINY = 1e-300  # avoids a division by 0
SPECTRUM = 40  # singular values and components that are shown
LARGEST = 1e9  # largest relative error that is shown
SHOWN = 3  # fixed points of which the eigenvalues are drawn
LISTED, SLOWEST = 8, 2  # fixed points in the table, and modes of each
MARKERS = {  # size, colour of the edge, colour of the face
    "attractor": (7, "black", "black"),
    "saddle": (7, "black", "#FFFFFF"),
    "repeller": (7, "black", "#FFFFFF"),
    "marginal point": (4, "#666666", "#666666"),
    "slow point": (4, "#666666", "#666666"),
}
NAMED = ("blue", "orange")  # names of the first two colours

Arrays = Mapping[str, np.ndarray]


class Section(NamedTuple):
    """A section of the page.

    Attributes
    ----------
    title : str
        The title.
    images : list of (str, str)
        One image for each panel, so that a narrow page can stack them, with a description in words.
    caption : str
        What the panels show, with LaTeX between dollar signs.
    columns, rows
        The columns and the rows of a table below.
    """

    title: str
    images: list[tuple[str, str]]
    caption: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


def write_page(analysis: Analysis | RecordingAnalysis, path: str | Path, name: str | None = None) -> None:
    """Write an analysis as a page.

    Parameters
    ----------
    analysis : Analysis or RecordingAnalysis
        The analysis.
    path : path
        The file, with a name that ends in .html.
    name : str, optional
        The name of what was analysed. By default it is that of the file.
    """
    path = path_of(path)
    if path.suffix not in (".html", ".htm"):
        raise InputError("path", str(path), "a name that ends in .html")
    described = _network(analysis) if isinstance(analysis, Analysis) else _recording(analysis)
    page = template("analysis.html").render(
        name=path.stem if name is None else name,
        version=__version__,
        verdict=analysis.verdict,
        notes=analysis.notes,
        json=analysis.to_json(),
        **described,
    )
    write_atomically(path, page.encode())


def _network(analysis: Analysis) -> dict[str, Any]:
    channels = len(analysis.decays)
    scales = analysis.fitted_scales or (None,) * channels
    source = "outputs" if analysis.readout == "given" else "currents"
    columns = {
        "channel": range(1, channels + 1),
        r"decay $\gamma$": map(number, analysis.decays),
        "scale $s$": map(number, analysis.scales),
        rf"effective $\gamma$, {source}": map(number, analysis.fitted_decays),
        f"time constant {analysis.unit}": map(number, analysis.times),
        "effective $s$": map(number, scales),
        f"steps integrated to within {percent(TOLERANCE)}": [_at_least(t, analysis.tested) for t in analysis.durations],
    } | _errors(analysis.errors)
    sections = [
        _decays(analysis.data, analysis.fitted_decays, "outputs" if analysis.readout == "given" else "currents"),
        _dimension(analysis.data, "currents", analysis.components, analysis.outliers),
        _dynamics(analysis.dynamics),
    ]
    if analysis.noisy is not None:
        sections.append(_noise(analysis.noisy, analysis.data))
    return {
        "subject": f"{analysis.neurons} neurons, {analysis.step}, readout {analysis.readout}.",
        "tiles": [
            (
                percent(float(np.max([list(errors.values()) for errors in analysis.errors.values()]))),
                f"largest relative error{'' if analysis.noisy is None else ', without its noise'}; "
                f"good: below {percent(GOOD)}",
            ),
            (_at_least(min(analysis.durations), analysis.tested), f"steps integrated to within {percent(TOLERANCE)}"),
            (
                _known(analysis.ratio),
                f"currents outside / inside {analysis.dimension} dimensions, $r$; good: below 0.05",
            ),
            (percent(analysis.linearity), "of the currents' variance linear in the integrals; good: above 99 %"),
        ],
        "columns": list(columns),
        "rows": list(zip(*columns.values(), strict=True)),
        "sections": _with_integrals(analysis, sections, analysis.tested, "currents"),
    }


def _errors(errors: Mapping[str, Mapping[int, Sequence[float]]]) -> dict[str, list[str]]:
    """Return columns of errors for a table with a row for each channel."""
    return {
        f"error, {kind}, {steps} steps": [percent(error) for error in by_channel]
        for kind, by_duration in errors.items()
        for steps, by_channel in by_duration.items()
    }


def _recording(analysis: RecordingAnalysis) -> dict[str, Any]:
    columns = {
        "channel": range(1, analysis.channels + 1),
        r"effective $\gamma$": map(number, analysis.decays),
        "variance that its integral adds": map(percent, analysis.shares),
        "error, read out of held-out activity": map(percent, analysis.errors),
    }
    sections = [
        _decays(analysis.data, analysis.decays, "activity"),
        _dimension(analysis.data, "activity", analysis.components, None),
    ]
    return {
        "subject": f"A recording of {analysis.neurons} neurons, {analysis.trials} trials of {analysis.duration} steps.",
        "tiles": [
            (percent(analysis.explained), "of the variance explained by integrals and present inputs"),
            (percent(analysis.chance), "is the most that an integral adds by chance"),
            (analysis.components, "principal components for 99 % of the variance"),
            (_known(analysis.participation), "components, effectively"),
        ],
        "columns": list(columns),
        "rows": list(zip(*columns.values(), strict=True)),
        "sections": _with_integrals(analysis, sections, None, "activity"),
    }


def _with_integrals(
    analysis: Analysis | RecordingAnalysis, sections: list[Section], tested: int | None, signals: str
) -> list[Section]:
    """Return the sections with those about integrals, if there is an integral."""
    if "selectivity" not in analysis.data:
        return sections
    coding = [_linearity(analysis.data, signals, analysis.linearity), _selectivity(analysis.data, signals)]
    return [_accuracy(analysis.data, tested), *sections, *coding]


def _accuracy(data: Arrays, tested: int | None) -> Section:
    axes = _panels(1 if tested is None else 2)
    plot.outputs(data["outputs"], data["targets"], axes[0])
    if tested is None:
        caption = "Integrals, and how they are read out of activity that the linear readout was not fitted on."
        return Section("Integrals", _embedded(axes), caption)
    _by_duration(data["errors"], axes[1])
    return Section(
        "Integrals",
        _embedded(axes),
        "A: outputs and the integrals that they should be, on one test sequence. B: relative error on sequences of $T$ "
        f"steps; dashed, {percent(TOLERANCE)}, up to which it counts as integrating.",
    )


def _by_duration(errors: np.ndarray, axis: Axes) -> None:
    """Draw the errors (time, channels) by the duration of sequences."""
    for c, by_steps in enumerate(errors.T):
        shown = np.where(by_steps < LARGEST, by_steps, np.nan)
        axis.plot(np.arange(1, len(by_steps) + 1), shown, color=plot.colour(c), label=f"channel {c + 1}")
    axis.axhline(TOLERANCE, color=TARGET, linestyle="--")
    axis.set(xscale="log", yscale="log", xlabel="steps $T$", ylabel="relative error up to $T$")
    legend(axis)


def _decays(data: Arrays, decays: Sequence[float], signals: str) -> Section:
    (axis,) = _panels(1)
    for c, (profile, decay) in enumerate(zip(data["profile"].T, decays, strict=True)):
        times = -1 / np.log(data["candidates"])
        label = rf"channel {c + 1}: $\gamma$ = {decay:.4g}"
        axis.plot(times, profile / max(profile.max(), TINY), color=plot.colour(c), label=label)
        if 0 < decay < 1:
            axis.axvline(-1 / np.log(decay), color=plot.colour(c), linestyle=":")
    axis.set(xscale="log", xlabel=r"time constant $-1 / \log\gamma$, steps", ylabel="variance explained / largest")
    axis.set_ylim(0, 1.3)
    legend(axis)
    return Section(
        "Effective decays",
        _embedded([axis]),
        rf"How much of the variance of the {signals} the integral of one channel with decay $\gamma$ adds to what the "
        "present input explains. Dotted: the decays that explain most, all channels together.",
    )


def _dimension(data: Arrays, signals: str, components: int, outliers: int | None) -> Section:
    axes = _panels(1 if outliers is None else 2)
    variances = data["variances"][:SPECTRUM] / max(data["variances"].sum(), TINY)
    rank = np.arange(1, len(variances) + 1)
    axes[-1].semilogy(rank, np.maximum(variances, 1e-16), ".", color=TARGET)
    axes[-1].semilogy(rank[:components], variances[:components], "o", color=CHANNELS[0])
    axes[-1].set(xlabel="principal component", ylabel="part of the variance")
    text = f"rincipal components of the {signals}; coloured, those that hold 99 % of the variance."
    if outliers is None:
        return Section("Dimension", _embedded(axes), f"P{text}")
    plot.spectrum(data["singular_values"][:SPECTRUM], outliers, axes[0])
    caption = f"A: singular values of $W$; coloured, those before the largest gap. B: p{text}"
    return Section("Dimension", _embedded(axes), caption)


def _dynamics(dynamics: Dynamics) -> Section:
    flow, found = dynamics.flow, dynamics.fixed_points
    axes = _panels(2)
    if len(flow.ticks) == 1:
        axes[0].axhline(0, color=TARGET, linewidth=0.8)
        axes[0].plot(flow.ticks[0], flow.speed[:, 0], color=CHANNELS[0])
        axes[0].set(xlabel=r"$z$", ylabel=r"$F(z) - z$")
        shown, zero = "The speed along it", "where it is 0"
    else:
        (x, y), speed = flow.ticks, flow.speed
        axes[0].streamplot(x, y, speed[..., 0], speed[..., 1], color=TARGET, linewidth=0.7, arrowsize=0.7, density=1.1)
        for c in range(2):
            axes[0].contour(x, y, speed[..., c], levels=[0], colors=CHANNELS[c], linewidths=1.2)
        axes[0].set(xlabel="$z_1$", ylabel="$z_2$", xlim=x[[0, -1]], ylim=y[[0, -1]])
        shown, zero = "The flow in it", f"lines, nullclines of $z_1$ ({NAMED[0]}) and $z_2$ ({NAMED[1]})"
    for point, place in zip(found.points, flow.points, strict=True):
        size, edge, fill = MARKERS[point.stability]
        at = place if len(place) == 2 else (place[0], 0.0)
        axes[0].plot(*at, "o", markersize=size, markeredgecolor=edge, markerfacecolor=fill, zorder=5)
    angle = np.linspace(0, 2 * np.pi, 200)
    axes[1].plot(np.cos(angle), np.sin(angle), color=TARGET, linewidth=0.8)
    for point, values in list(zip(found.points, found.eigenvalues, strict=True))[:SHOWN]:
        size, edge, fill = MARKERS[point.stability]
        axes[1].plot(values.real, values.imag, ".", color=edge, alpha=0.5, markersize=4)
    axes[1].set(xlabel=r"Re $\lambda$", ylabel=r"Im $\lambda$", aspect="equal")
    whole = dynamics.coordinates <= 2
    place = (
        "All of its latent coordinates" if whole else f"The plane with {percent(flow.share)} of the states' variance"
    )
    caption = (
        f"A: {place}. {shown}; {zero}; filled circles, attractors; open ones, unstable points; grey, slow or marginal "
        "ones. B: eigenvalues of a step at the fixed points; those on the unit circle last, those outside grow. Below, "
        "cosines of the angles of each input with the left eigenvector, which it drives, and of each output's weights "
        "with the right one, which it reads."
    )
    columns = [
        "point",
        "states that settle next to it",
        r"multiplier $|\lambda|$",
        "time constant, steps",
        "period, steps",
    ]
    columns += (
        ["driven by inputs", "seen by outputs"]
        if found.dt is None
        else ["in time", "driven by inputs", "seen by outputs"]
    )
    rows = [row for point in found.points[:LISTED] for row in _rows(point, found.dt)]
    return Section("Without inputs", _embedded(axes), caption, columns, rows)


def _noise(noisy: Noisy, data: Arrays) -> Section:
    columns = {
        "channel": range(1, len(noisy.decays) + 1),
        r"effective $\gamma$": map(number, noisy.decays),
        f"outputs moved in {noisy.steps} steps": map(number, noisy.deviations),
        "of their spread": map(percent, noisy.parts),
    } | _errors(noisy.errors)
    axes = _panels(2)
    plot.outputs(data["noisy_outputs"], data["targets"], axes[0])
    _by_duration(data["noisy_errors"], axes[1])
    return Section(
        "With its noise",
        _embedded(axes),
        f"The same sequences with process noise of {noisy.noise:.4g} on each state and step, which no other section "
        "has in it. A: outputs and integrals. B: relative error on sequences of $T$ steps. Below, effective decays of "
        "the noisy outputs, and by how much noise moves the outputs without inputs, root mean square.",
        list(columns),
        [[str(cell) for cell in row] for row in zip(*columns.values(), strict=True)],
    )


def _rows(point: Point, dt: float | None) -> Iterator[list[str]]:
    """Return a row for each of the slowest modes of a fixed point."""
    for k, mode in enumerate(point.modes[:SLOWEST]):
        time = abs(mode.time_constant)
        yield [
            "" if k else point.stability,
            "" if k else percent(point.reached),
            number(mode.multiplier),
            _finite(time),
            _finite(mode.period),
            *([] if dt is None else [_finite(time * dt)]),
            "  ".join(f"{cosine:.2f}" for cosine in mode.inputs),
            "  ".join(f"{cosine:.2f}" for cosine in mode.outputs),
        ]


def _finite(value: float) -> str:
    return "∞" if math.isinf(value) else number(value)


def _linearity(data: Arrays, signals: str, linearity: float) -> Section:
    axes = _panels(data["coordinates"].shape[1])
    chosen = slice(None, None, len(data["coordinates"]) // POINTS + 1)
    for c, axis in enumerate(axes):
        predicted, coordinate = (data[name][chosen, c] for name in ("predicted", "coordinates"))
        axis.plot(predicted, coordinate, ".", color=plot.colour(c), markersize=2, rasterized=True)
        ends = [min(predicted.min(), coordinate.min()), max(predicted.max(), coordinate.max())]
        axis.plot(ends, ends, color="black", linewidth=0.8)
        axis.set(xlabel=rf"$(R\bar{{y}})_{c + 1}$", ylabel=rf"$\alpha_{c + 1}$")
    return Section(
        "Linearity",
        _embedded(axes),
        rf"Coordinates $\alpha$ of the {signals} along their first principal components, against their best linear "
        rf"function $R\bar y$ of the integrals. Such functions have {percent(linearity)} of the variance of all "
        f"{signals}.",
    )


def _selectivity(data: Arrays, signals: str) -> Section:
    vectors = data["selectivity"]
    if "populations" in data:
        (axis,) = _panels(1)
        plot.populations(data["vectors"], data["populations"], axis)
        text = "Activity of each neuron per unit of positive ($L_+$) and of negative ($L_-$) integral."
        return Section("Selectivity", _embedded([axis]), text)
    per_spread = f"change of the {signals} of neuron $i$ with the integrals, per standard deviation of each"
    if vectors.shape[1] == 1:
        (axis,) = _panels(1)
        plot.selectivity(vectors, axis)
        return Section("Selectivity", _embedded([axis]), f"$s_i$, {per_spread}.")
    plane, circle = axes = _panels(2)
    plot.selectivity(vectors, plane)
    circle.hist(np.degrees(np.arctan2(vectors[:, 1], vectors[:, 0])) % 360, bins=24, range=(0, 360), color=CHANNELS[0])
    circle.axhline(len(vectors) / 24, color="black", linestyle=":")
    circle.set(xlabel="angle of $(s_{i,1}, s_{i,2})$, degrees", ylabel="neurons", xticks=range(0, 361, 90))
    return Section(
        "Selectivity",
        _embedded(axes),
        f"A: $s_i$, {per_spread}, for the first two channels. B: their angles; a multiple of 90 degrees is selectivity "
        "to one channel, between them it is mixed. Dotted: evenly spread.",
    )


def _panels(count: int) -> list[Axes]:
    """Return the axes of drawings with one panel each, with letters if there are several."""
    axes = [panels(1, width=5.0, height=3.6)[1][0] for _ in range(count)]
    if count > 1:
        for letter, axis in zip(ascii_uppercase, axes, strict=False):
            axis.set_title(letter, loc="left", fontweight="bold")
    return axes


def _embedded(axes: Sequence[Axes]) -> list[tuple[str, str]]:
    images = []
    for axis in axes:
        buffer = io.BytesIO()
        drawing = axis.figure
        assert isinstance(drawing, Drawing)
        drawing.savefig(buffer, format="svg", metadata={"Date": None})
        source = "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode()
        images.append((source, described(drawing.axes)))
    return images


def _known(value: float) -> str:
    return number(None if np.isnan(value) else value)


def _at_least(steps: int, tested: int) -> str:
    return f"≥ {steps}" if steps == tested else str(steps)
