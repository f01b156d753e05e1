"""Train a two-channel ReLU integrator with 1000 neurons, print its analysis, draw its outputs against the targets."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import torch

import rni
from rni.runs.progress import training_progress
from rni.tasks.inputs import bursts

COLOURS = ("#0072B2", "#D55E00")  # channels 1 and 2, colour-blind safe


def main(out: Path, neurons: int = 1000, steps: int = 5000) -> None:
    specification = rni.parse_run(
        {"task": {"decays": [0.995, 0.993]}, "network": {"neurons": neurons}, "training": {"steps": steps}}
    )
    with training_progress(steps) as report:
        net = rni.run(specification, callbacks=[report]).network
    print(rni.analyze(net).to_json())

    x = bursts(1, 1000, 2, torch.Generator().manual_seed(4))
    with torch.no_grad():
        outputs, targets = net.outputs(x)[0], net.task.targets(x)[0]
    figure, axes = plt.subplots(2, 1, figsize=(8, 4), sharex=True, layout="constrained")
    for c, axis in enumerate(axes):
        axis.plot(targets[:, c], color="0.7", linewidth=4, label=r"target $\bar y$")
        axis.plot(outputs[:, c], color=COLOURS[c], linewidth=1.2, label=r"output $y$")
        axis.set_ylabel(rf"$y_{c + 1}$,  $\gamma_{c + 1} = {net.task.decays[c]}$")
        axis.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, borderaxespad=0)
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1].set_xlabel("time step (trained on sequences of 3)")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=130)
    print(f"wrote {out}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "report/two_channels.png"))
