"""The result of an analysis of a network, with its text, its JSON and its figure."""

import base64
import html
import io
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rni.analysis.verdict import GOOD, Verdict, percent
from rni.core.atomic import write_atomically
from rni.core.errors import InputError
from rni.core.text_result import TextResult, join_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rni.analysis.behaviour import Dynamics
    from rni.analysis.noisy import Noisy


@dataclass(frozen=True, kw_only=True, repr=False)
class Result(TextResult):
    """What the analyses of networks and of recordings have in common.

    Attributes
    ----------
    verdict : Verdict
        What the network or the recording does.
    populations : dict or None
        The parts of the neurons in each population, for one channel and activity that is never negative.
    mixing : float or None
        For several channels, from 0 (each neuron codes one channel) to 1 (all channels alike).
    notes : tuple of str
        What was assumed or left out.
    """

    verdict: Verdict
    populations: dict[str, float] | None
    mixing: float | None
    notes: tuple[str, ...]

    def coding_lines(self) -> Iterator[str]:
        if self.populations is not None:
            yield "populations: " + "  ".join(f"{name} {100 * part:.1f} %" for name, part in self.populations.items())
        if self.mixing is not None and math.isfinite(self.mixing):
            yield f"mixed selectivity: {self.mixing:.3g} (0: each neuron codes one channel, 1: all channels alike)"
        yield from (f"note: {note}" for note in self.notes)

    def to_json(self) -> str:
        """Return everything but the arrays as JSON. Numbers that are not finite are null."""
        return json.dumps(_plain(asdict(self)), indent=2)

    def save(self, path: str | Path) -> None:
        """Write the JSON to a file NUMBERS.json. `rni.pages.write_page` writes a page with figures."""
        path = Path(path)
        if path.suffix != ".json":
            raise InputError("path", str(path), "a name that ends in .json")
        write_atomically(path, f"{self.to_json()}\n".encode())


@dataclass(frozen=True, kw_only=True, repr=False)
class Analysis(Result):
    r"""The result of an analysis of a network. `print` shows it as text.

    Attributes
    ----------
    verdict : Verdict
        What the network does.
    neurons, activation, form, leak, noise, dt
        The number of neurons, and the parameters of a step.
    decays, scales : tuple of float
        Those of the task, or the fitted ones if no task is known.
    errors : dict
        Relative errors by kind of test, duration and channel. They are NaN if no task is known and no integral was
        found.
    durations, limits, tested
        For each channel, the longest sequences with an error of at most 10 % on every kind of test, and the kind that
        limits them, on sequences of up to `tested` steps.
    readout : str
        "given" with the network, or "fitted" to the integrals by least squares.
    fitted_decays, fitted_scales : tuple of float
        Those of the integrals that are closest to the outputs; or to the currents, which have no scale, if the readout
        was fitted.
    times : tuple of float
        The time constants of these decays, in steps, or in the unit of dt.
    offset : tuple of float or None
        The outputs at rest, which are taken away before outputs are judged. None if the readout was fitted.
    singular_values, outliers
        Singular values of W, the largest first, and how many of them are before the largest gap.
    ratio, dimension, null_ratio
        r, the currents outside over those inside the best subspace of this dimension, on bursts of 200 steps as in
        Table 1 of the paper; and r of currents that have no preferred direction.
    components, participation, principal_ratio
        The principal components of the currents that hold 99 % of the variance, their effective number, and r for the
        first D of them, about the mean.
    linearity : float
        The part of the currents' variance that is linear in the integrals.
    populations : dict or None
        For one channel and activity that is never negative, the parts of the neurons in each population.
    mixing : float or None
        For several channels, from 0 (each neuron codes one channel) to 1 (all channels alike).
    dynamics : Dynamics
        Fixed points, and what happens without inputs.
    noisy : Noisy or None
        The network with its process noise, if it has any. Everything else is measured without noise.
    notes : tuple of str
        What was assumed or left out.
    data : dict of array
        The arrays behind the figures.

    Examples
    --------
    >>> net = rni.design(rni.Integration([0.95, 0.9]), neurons=40).network
    >>> found = rni.analyze(net, inputs=rni.inputs.white_noise(16, 100, 2, torch.Generator().manual_seed(0)))
    >>> found.outliers, found.readout, round(found.fitted_decays[0], 3), found.linearity > 0.999
    (2, 'given', 0.95, True)
    >>> print(str(found).splitlines()[1])
    40 neurons, ReLU(), decays 0.95  0.9
    """

    neurons: int
    activation: str
    form: str
    leak: float | tuple[float, ...]
    noise: float
    dt: float | None
    times: tuple[float, ...]
    decays: tuple[float, ...]
    scales: tuple[float, ...]
    errors: dict[str, dict[int, tuple[float, ...]]]
    singular_values: tuple[float, ...]
    dimension: int
    ratio: float
    null_ratio: float
    readout: str
    fitted_decays: tuple[float, ...]
    fitted_scales: tuple[float, ...] | None
    offset: tuple[float, ...] | None
    durations: tuple[int, ...]
    limits: tuple[str, ...]
    tested: int
    outliers: int
    components: int
    participation: float
    principal_ratio: float
    linearity: float
    dynamics: "Dynamics"
    noisy: "Noisy | None"
    data: dict[str, np.ndarray] = field(repr=False, compare=False)

    @property
    def unit(self) -> str:
        """The unit of `times`."""
        return "in steps" if self.dt is None else f"where a step is {self.dt:.4g}"

    @property
    def step(self) -> str:
        """A text for the activation, and for the form, the leak and the noise if there are any."""
        leaks = (min(self.leak), max(self.leak)) if isinstance(self.leak, tuple) else (self.leak,)
        leak = "" if leaks == (1.0,) else f", {self.form} form, leak {' to '.join(f'{each:.4g}' for each in leaks)}"
        return f"{self.activation}{leak}{f', noise {self.noise:.4g}' if self.noise else ''}"

    def lines(self) -> Iterator[str]:
        yield str(self.verdict)
        yield f"{self.neurons} neurons, {self.step}, decays {join_numbers(self.decays)}"
        good = f"(good: below {percent(GOOD)})"
        for kind, errors in self.errors.items():
            for duration, by_channel in errors.items():
                yield f"relative error, {kind}, {duration} steps: {'  '.join(map(percent, by_channel))} {good}"
        durations = (
            f"{t} or more" if t == self.tested else f"{t} ({kind})"
            for t, kind in zip(self.durations, self.limits, strict=True)
        )
        yield f"within 10 % for: {'  '.join(durations)} steps"
        source = "outputs" if self.readout == "given" else "currents (readout fitted)"
        yield f"effective decays, from the {source}: {join_numbers(self.fitted_decays)}"
        if self.leak != 1 or self.dt is not None:
            yield f"time constants of them {self.unit}: {join_numbers(self.times)}"
        if self.fitted_scales is not None:
            yield f"effective scales: {join_numbers(self.fitted_scales)}"
        channels = len(self.decays)
        yield f"singular values: {join_numbers(self.singular_values)} ... ({self.outliers} stand out; good: {channels})"
        if math.isfinite(self.ratio):
            by_chance = f"(good: below 0.05; by chance {self.null_ratio:.3g})"
            yield f"currents outside / inside {self.dimension} dimensions: r = {self.ratio:.3g} {by_chance}"
        if math.isfinite(self.participation):
            effective = f"(effective number {self.participation:.3g}; good: {channels})"
            ratio = f"r = {self.principal_ratio:.3g} for the first {self.dimension}"
            yield f"principal components of the currents: {self.components} for 99 % {effective}; {ratio}"
        if math.isfinite(self.linearity):
            yield f"currents linear in the integrals: {percent(self.linearity)} of the variance (good: above 99 %)"
        yield from self.dynamics.lines()
        if self.noisy is not None:
            yield from self.noisy.lines()
        yield from self.coding_lines()

    def plot(self) -> "Figure":
        """Draw the outputs and the integrals on a test sequence, and the singular values."""
        # matplotlib takes long to import, and the text and the JSON do not need it
        from matplotlib.figure import Figure

        from rni.plots import plot

        figure = Figure(figsize=(9, 3), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[2, 1])
        plot.outputs(self.data["outputs"], self.data["targets"], left)
        plot.spectrum(self.singular_values, self.outliers, right)
        return figure

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the text, and `plot()` below it."""
        from rni.plots.style import described

        figure, buffer = self.plot(), io.BytesIO()
        figure.savefig(buffer, format="png")
        image, seen = base64.b64encode(buffer.getvalue()).decode(), html.escape(described(figure.axes))
        return f'{super()._repr_html_()}<img src="data:image/png;base64,{image}" alt="{seen}">'


def _plain(value: Any) -> Any:
    """Convert a value to plain data for JSON, without arrays."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if key != "data" and not isinstance(each, np.ndarray)}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
