"""Fig 16: the Hessian of the ReLU proxy loss at its minima predicts learning rate and time of convergence."""

from functools import partial

import numpy as np
import torch
from matplotlib.figure import Figure as Drawing

from rni.core.errors import Diverged
from rni.losses import ReLUProxyLoss
from rni.networks.network import Network
from rni.papers import Claim, Measured, Profile, Results
from rni.papers.fanthomme2021.trainings import Run, proxy_descents, proxy_scales
from rni.plots.style import CHANNELS, TARGET, legend, panels
from rni.runs.execution import Result
from rni.runs.run import TrainRun
from rni.theory.proxy import ProxyHessian, proxy_hessian
from rni.training.descent import descend, make_plan
from rni.weights import LowRank

SEEDS = 8
SMALL = 50  # the paper's size, at which the whole Hessian can be diagonalised
SETTINGS = (
    "a learning rate just below the stability limit of each scale instead of the authors' small ones, 2 networks for 8 "
    "(1 in the quick profile, all in the full one)"
)
FACTORS = (0.97, 1.03)  # of the predicted stability limit


def specifications(profile: Profile, neurons: int) -> list[list[Run]]:
    """Return the runs: a row for each scale, a column for each seed."""
    return proxy_descents(proxy_scales(profile), neurons, profile.seeds(SEEDS, few=2, quick=1))


def runs(profile: Profile) -> list[Run]:
    return [s for n in (SMALL, profile.neurons) for row in specifications(profile, n) for s in row]


def measure(results: Results, profile: Profile) -> Measured:
    sizes = (SMALL, profile.neurons)
    trained = [[[results[run] for run in row] for row in specifications(profile, n)] for n in sizes]
    largest = np.array([[[_hessian(r.network).largest_eigenvalue() for r in row] for row in of] for of in trained])
    smallest = np.array([[[effective_eigenvalue(r) for r in row] for row in of] for of in trained])
    s = np.array(proxy_scales(profile))
    tested = [0, int(np.abs(np.log(s)).argmin()), len(s) - 1]
    growth = [[_growth(of[k][0].network, largest[i, k, 0]) for k in tested] for i, of in enumerate(trained)]
    whole = _hessian(trained[0][tested[1]][0].network).dense().reshape(SMALL**2, -1)
    dense = float(torch.linalg.eigvalsh(whole)[-1])
    return {
        "scales": s,
        "sizes": np.array(sizes),
        "largest": largest,  # this and the next (sizes, scales, seeds)
        "smallest": smallest,
        "tested_scales": s[tested],
        "growth": np.array(growth),  # (sizes, tested scales, factors)
        "lanczos_error": abs(largest[0, tested[1], 0] / dense - 1),
    }


def effective_eigenvalue(result: Result) -> float:
    r"""Return $\lambda_-$ from the last two decades of the loss, which falls by $(1 - \eta\lambda_-)^2$ per step."""
    losses = np.array(result.losses)
    start = int(np.argmax(losses <= 100 * losses[-1]))
    shrinking = (losses[-1] / losses[start]) ** (0.5 / (len(losses) - 1 - start))
    run = result.specification
    assert isinstance(run, TrainRun)
    rate = run.training.learning_rate
    assert rate is not None
    return float((1 - shrinking) / rate)


def _hessian(net: Network) -> ProxyHessian:
    return proxy_hessian(net.recurrent, net.encoders, net.decoders, net.task.decays[0])


def _growth(net: Network, largest: float, steps: int = 300) -> list[float]:
    """Return the largest loss over the first, for descents near the minimum just below and just above the limit."""
    factors = net.recurrent.factors()
    assert factors is not None
    left, right = (
        torch.randn(2, 1, net.neurons, generator=torch.Generator().manual_seed(0), dtype=net.dtype) / net.neurons
    )
    growth = []
    for factor in FACTORS:
        moved = LowRank(*factors, tolerance=1e-13)  # the growing part is small at first and must not be cut off
        moved.descend_(left, right, 1e-2)
        copy = net.changed(moved)
        try:
            plan = make_plan(copy, ReLUProxyLoss(net.task), learning_rate=factor * 2 / largest, steps=steps)
            losses = descend(copy, plan)
        except Diverged as error:
            losses = [*error.losses, error.loss]
        growth.append(max(losses) / losses[0])
    return growth


def claims(measured: Measured) -> list[Claim]:
    times = (measured["largest"] / measured["smallest"]).mean(2)  # (sizes, scales)
    s, sizes = measured["scales"], measured["sizes"]
    fastest, slower = s[times.argmin(1)], times[:, [0, -1]].min(1) / times.min(1)
    where = "Appendix, Single-channel ReLU proxy loss gradients and Hessian"
    trained_claim = partial(Claim, settings=SETTINGS)
    return [
        Claim(
            id="fig16.lanczos",
            origin="ours",
            where=where,
            statement="The largest eigenvalue needs no diagonalisation of the whole Hessian, which restricts the paper "
            "to 50 neurons.",
            criterion="for 50 neurons Lanczos and dense diagonalisation agree to 1e-6",
            expected="equal",
            measured=measured["lanczos_error"],
            holds=lambda error: error < 1e-6,
        ),
        trained_claim(
            id="fig16.limit",
            where=where,
            statement=r"$2/\lambda_+$ is the largest stable learning rate.",
            criterion="started a little off the minimum, at the smallest scale, at 1 and at the largest, for both "
            "sizes: the loss never rises at 0.97 of the limit, and rises tenfold or more at 1.03",
            expected="stable below, unstable above",
            measured={
                "largest rise below": measured["growth"][..., 0].max(),
                "smallest rise above": measured["growth"][..., 1].min(),
            },
            holds=lambda rise: rise["largest rise below"] <= 1.001 and rise["smallest rise above"] >= 10,
        ),
        trained_claim(
            id="fig16.preferred-scale",
            where="Section 4.2, proxy loss",
            statement=r"The convergence time depends strongly on the scale, with a preferred one around $|e||d|$.",
            criterion="for both sizes the fastest scale is between 0.5 and 2, for |e||d| = 1, and the smallest and the "
            "largest scale are ten times slower or more",
            expected="1",
            measured={f"fastest scale, n = {n}": x for n, x in zip(sizes, fastest, strict=True)}
            | {f"slower at the ends, n = {n}": x for n, x in zip(sizes, slower, strict=True)},
            holds=lambda m: all(
                0.5 <= value <= 2 if name.startswith("fastest") else value >= 10 for name, value in m.items()
            ),
        ),
        trained_claim(
            id="fig16.larger",
            where=where,
            statement="The learning rate and the order of magnitude of the time found with 50 neurons hold for larger "
            "networks.",
            criterion="at every scale the means over networks of the largest eigenvalue agree within 30 % between both "
            "sizes, and those of the time within a factor of 3 (one network of 50 varies by more than 10 %, so that "
            "several are needed)",
            expected="1",
            measured=None
            if measured["largest"].shape[2] == 1
            else {"learning rate": _ratio(*measured["largest"].mean(2)), "time": _ratio(*times)},
            needs="two networks of each size and scale (--profile paper)",
            holds=lambda ratio: ratio["learning rate"] <= 1.3 and ratio["time"] <= 3,
        ),
    ]


def _ratio(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest ratio between corresponding values, at least 1."""
    return np.exp(np.abs(np.log(a / b)).max())


def draw(measured: Measured) -> Drawing:
    drawing, (top, rate, time) = panels(3, width=3.8, height=3.3)
    s, largest = measured["scales"], measured["largest"]
    for size, n in enumerate(measured["sizes"]):
        style = {"color": CHANNELS[size], "marker": "os"[size], "markersize": 4, "label": f"$n = {n}$"}
        top.plot(s, largest[size].mean(1), **style)
        rate.plot(s, (2 / largest[size]).mean(1), **style)
        time.plot(s, (largest[size] / measured["smallest"][size]).mean(1), **style)
    for axis in (top, rate, time):
        axis.axvline(1, color=TARGET, linewidth=0.8, zorder=0)
        axis.set(xscale="log", yscale="log", xlabel="scale $s$")
        legend(axis)
    top.set_ylabel(r"largest Hessian eigenvalue $\lambda_+$")
    rate.set_ylabel(r"largest stable learning rate $2/\lambda_+$")
    time.set_ylabel(r"convergence time $\lambda_+/\lambda_-$ (steps)")
    return drawing


CAPTION = (
    r"At the minima that gradient descent finds from $W = 0$, $\gamma = 0.995$, independent unit vectors, for "
    r"the paper's 50 neurons and for a larger network. A: the largest eigenvalue, by Lanczos. B: the largest stable "
    r"learning rate, confirmed by descents just below and above it. C: steps to come closer by a factor e at the "
    r"learning rate $1/\lambda_+$, with $\lambda_-$ from the decay of the loss. The grey line is $s = |e||d|$."
)
