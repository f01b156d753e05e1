"""Fig 1: the network and its target."""

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Circle, FancyArrowPatch

from rni.papers import Claim, Measured, Profile, Results
from rni.plots.style import CHANNELS, TARGET, panels
from rni.tasks.inputs import pulses
from rni.tasks.integration import Integration

TASK = Integration((0.95, 0.8), (1.0, 1.0))
DURATION = 150


def measure(results: Results, profile: Profile) -> Measured:
    generator = torch.Generator().manual_seed(2)
    x = pulses(1, DURATION, TASK.channels, 0.06, generator).double()
    targets = TASK.targets(x)[0]
    decays, scales = torch.tensor(TASK.decays, dtype=x.dtype), torch.tensor(TASK.scales, dtype=x.dtype)
    kernel = scales * decays ** torch.arange(1, DURATION + 1)[:, None]  # s gamma^(k+1), (time, channels)
    sums = torch.stack([(kernel[: t + 1].flip(0) * x[0, : t + 1]).sum(0) for t in range(DURATION)])
    return {
        "inputs": x[0].numpy(),
        "targets": targets.numpy(),
        "difference": float((targets - sums).abs().max() / sums.abs().max()),
    }


def claims(measured: Measured) -> list[Claim]:
    return [
        Claim(
            id="fig1.target",
            where="Section 2, equation of the target",
            statement=r"The target $\bar y_t = s \sum_k \gamma^{k+1} x_{t-k}$ is reached step by step: the integral "
            r"grows by $s\,x_t$ and is then multiplied by $\gamma$.",
            criterion="the recursion and the sum differ by less than 1e-12 of the largest integral",
            expected="equal",
            measured=measured["difference"],
            holds=lambda difference: difference < 1e-12,
        )
    ]


def draw(measured: Measured) -> Drawing:
    drawing, (network, task) = panels(2, width=5.0, height=3.4)
    _draw_network(network)
    time = np.arange(len(measured["inputs"]))
    for c, decay in enumerate(TASK.decays):
        x = measured["inputs"][:, c]
        task.vlines(time[x != 0], 0, x[x != 0], color=CHANNELS[c], linewidth=3, alpha=0.35)
        label = rf"$\bar y_{c + 1}$, $\gamma_{c + 1} = {decay}$"
        task.plot(time, measured["targets"][:, c], color=CHANNELS[c], label=label)
    task.axhline(0, color=TARGET, linewidth=0.8, zorder=0)
    task.set(xlabel="time step $t$", ylabel=r"inputs $x_t$ (bars), integrals $\bar y_t$")
    task.legend(frameon=False, fontsize="small")
    return drawing


def _draw_network(axis: Axes) -> None:
    axis.set_axis_off()
    axis.set(xlim=(-0.2, 10.2), ylim=(-0.5, 6.5), aspect="equal")
    neurons = [(5 + 1.5 * np.cos(a), 3 + 1.7 * np.sin(a)) for a in np.linspace(0, 2 * np.pi, 9)[:-1] + 0.2]
    for i, (x, y) in enumerate(neurons):
        for u, v in neurons[:i]:
            axis.plot([x, u], [y, v], color=TARGET, linewidth=0.5, zorder=0)
        axis.add_patch(Circle((x, y), 0.23, facecolor="white", edgecolor="0.3", zorder=2))
    axis.text(5, 5.5, r"$h_t = f(W(h_{t-1} + \sum_c x_{c,t}\, e_c))$", ha="center", fontsize=10)
    for c, y in enumerate((4.2, 1.8)):
        for start, stop in (((0.7, y), (3.2, y)), ((6.8, y), (9.3, y))):
            axis.add_patch(FancyArrowPatch(start, stop, arrowstyle="-|>", mutation_scale=14, color=CHANNELS[c]))
        for x, text in ((0.3, rf"$x_{c + 1}$"), (9.75, rf"$y_{c + 1}$")):
            axis.text(x, y, text, ha="center", va="center", color=CHANNELS[c], fontsize=13)
        for x, text in ((1.9, rf"$e_{c + 1}$"), (8.1, rf"$d_{c + 1}$")):
            axis.text(x, y + 0.3, text, ha="center", color=CHANNELS[c])


CAPTION = (
    r"A: inputs enter the recurrent network along the encoders $e_c$, outputs are read along the decoders "
    r"$d_c$. B: two sparse input sequences (bars) and their decaying integrals, with a slow and a fast decay."
)
