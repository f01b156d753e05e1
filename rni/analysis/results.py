"""What an analysis found, and how it says so."""

import base64
import html
import io
import json
import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rni.analysis.behaviour import Dynamics
from rni.analysis.noisy import Noisy
from rni.analysis.verdict import GOOD, Verdict, percent
from rni.core.atomic import write_atomically
from rni.core.described import Described, numbers
from rni.core.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True, repr=False)
class _Result(Described):
    verdict: Verdict
    populations: dict[str, float] | None
    mixing: float | None
    notes: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        yield str(self.verdict)
        yield from self.numbers()
        if self.populations is not None:
            yield "populations: " + "  ".join(f"{name} {100 * part:.1f} %" for name, part in self.populations.items())
        if self.mixing is not None and math.isfinite(self.mixing):
            yield f"mixed selectivity: {self.mixing:.3g} (0: each neuron codes one channel, 1: all channels alike)"
        yield from (f"note: {note}" for note in self.notes)

    @abstractmethod
    def numbers(self) -> Iterator[str]:
        """What was measured."""

    def to_json(self) -> str:
        """All but the arrays; what is not finite is null."""
        return json.dumps(_plain(asdict(self)), indent=2)

    def save(self, path: str | Path) -> None:
        """As a page with figures, PAGE.html, or as numbers, NUMBERS.json."""
        path = Path(path)
        if path.suffix == ".json":
            write_atomically(path, f"{self.to_json()}\n".encode())
        elif path.suffix == ".html" and isinstance(self, Analysis | RecordingAnalysis):
            from rni.pages.analysis import write_page

            write_page(self, path, path.stem)
        else:
            raise InputError(f"path: {str(path)!r}; allowed: a name that ends in .html or .json")


@dataclass(frozen=True, kw_only=True, repr=False)
class Analysis(_Result):
    """The verdict; relative errors by kind of input and duration, for each channel; singular values; the ratio r.

    - ratio: r, the currents outside over those inside the best D-dimensional subspace, on bursts of 200 steps as in
      Table 1. dimension: that D. null_ratio: r by chance.
    - decays, scales: of the task, or the fitted ones where no task is known.
    - readout: "given" with the network, or "fitted" by least squares to the integrals.
    - fitted_decays, fitted_scales: of the integrals that are closest to the outputs; or to the currents, which have no
      scale, where the readout is fitted. times: the time constants of these decays, in steps, or in the unit of dt.
    - errors: not a number where no task is known and no integral found.
    - durations: the longest sequences with an error up to 10 % on every kind of input, of those up to `tested` steps.
      limits: the kind that ends each.
    - offset: the outputs at rest, which are taken away from them before (None where the readout is fitted).
    - outliers: singular values before the largest gap.
    - components, participation: principal components of the currents for 99 % of the variance, and their effective
      number. principal_ratio: r for the first D of them, about the mean.
    - linearity: part of the currents' variance that is linear in the integrals.
    - populations (one channel, activity that is never negative): parts of the neurons.
    - mixing (several channels): 0 is pure, 1 is even selectivity.
    - dynamics: without inputs. form, leak, noise, dt: of the network's step.
    - noisy: the network with its noise, where it has any; all else is measured without.
    - data: the arrays behind the figures.

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
    dynamics: Dynamics
    noisy: Noisy | None
    data: dict[str, np.ndarray] = field(repr=False, compare=False)

    @property
    def unit(self) -> str:
        """Of `times`."""
        return "in steps" if self.dt is None else f"where a step is {self.dt:.4g}"

    @property
    def step(self) -> str:
        """The network's activation, and form, leak and noise where it has them."""
        leaks = (min(self.leak), max(self.leak)) if isinstance(self.leak, tuple) else (self.leak,)
        leak = "" if leaks == (1.0,) else f", {self.form} form, leak {' to '.join(f'{each:.4g}' for each in leaks)}"
        return f"{self.activation}{leak}{f', noise {self.noise:.4g}' if self.noise else ''}"

    def numbers(self) -> Iterator[str]:
        yield f"{self.neurons} neurons, {self.step}, decays {numbers(self.decays)}"
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
        yield f"effective decays, from the {source}: {numbers(self.fitted_decays)}"
        if self.leak != 1 or self.dt is not None:
            yield f"time constants of them {self.unit}: {numbers(self.times)}"
        if self.fitted_scales is not None:
            yield f"effective scales: {numbers(self.fitted_scales)}"
        channels = len(self.decays)
        yield f"singular values: {numbers(self.singular_values)} ... ({self.outliers} stand out; good: {channels})"
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

    def plot(self) -> "Figure":
        """Outputs against integrals on a test sequence, and singular values, as a matplotlib figure."""
        from matplotlib.figure import Figure

        from rni import plot

        figure = Figure(figsize=(9, 3), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[2, 1])
        plot.outputs(self.data["outputs"], self.data["targets"], left)
        plot.spectrum(self.singular_values, self.outliers, right)
        return figure

    def _repr_html_(self) -> str:
        """What a notebook shows: the lines, and `plot()` below them."""
        from rni.plots.style import described

        figure, buffer = self.plot(), io.BytesIO()
        figure.savefig(buffer, format="png")
        image, seen = base64.b64encode(buffer.getvalue()).decode(), html.escape(described(figure.axes))
        return f'{super()._repr_html_()}<img src="data:image/png;base64,{image}" alt="{seen}">'


@dataclass(frozen=True, kw_only=True, repr=False)
class RecordingAnalysis(_Result):
    """What recorded activity says without weights: the verdict, effective decays, dimension, selectivity.

    decays: of the integrals that explain most of the activity's variance beside the present input. shares: what each
    integral adds to the explained variance; chance: the most that one adds when the inputs are those of other trials
    (of another time, for one trial). explained: integrals and present inputs together, adjusted for the number of
    coefficients. errors: relative errors of the
    integrals as read out linearly, fitted on one half of the trials (of the time, for one trial), tested on the other.
    components, participation, linearity, populations, mixing, data: as in `Analysis`, of activity.

    >>> net = rni.design(rni.Integration(0.95), neurons=20).network
    >>> x = rni.inputs.white_noise(30, 50, 1, torch.Generator().manual_seed(0)).double()
    >>> found = rni.analyze({"activity": net(x)[0].detach(), "inputs": x})
    >>> round(found.decays[0], 3), found.chance < 0.1 < found.shares[0]
    (0.95, True)
    """

    neurons: int
    channels: int
    trials: int
    duration: int
    decays: tuple[float, ...]
    shares: tuple[float, ...]
    chance: float
    explained: float
    errors: tuple[float, ...]
    components: int
    participation: float
    linearity: float
    data: dict[str, np.ndarray] = field(repr=False, compare=False)

    def numbers(self) -> Iterator[str]:
        size = f"{self.trials} trials of {self.duration} steps, {self.channels} input channels"
        yield f"recording of {self.neurons} neurons, {size}"
        yield f"effective decays: {numbers(self.decays)}"
        shares = "  ".join(map(percent, self.shares))
        yield f"variance that each integral adds: {shares} (by chance {percent(self.chance)})"
        yield f"variance explained by integrals and present inputs: {percent(self.explained)}"
        errors = f"{'  '.join(map(percent, self.errors))} (good: below {percent(GOOD)}; by chance 100 %)"
        yield f"relative error of the integrals, read out of held-out activity: {errors}"
        effective = f"(effective number {self.participation:.3g})"
        yield f"principal components of the activity: {self.components} for 99 % {effective}"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if key != "data" and not isinstance(each, np.ndarray)}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
