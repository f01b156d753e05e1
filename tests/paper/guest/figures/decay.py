"""The output of a trained network after one pulse."""

import torch
from matplotlib.figure import Figure as Drawing

from rni import parse_run
from rni.papers import Claim, Measured, Profile, Results
from rni.runs.run import TrainRun

CAPTION = "The output $y_t$ of a trained network after one pulse."


def runs(profile: Profile) -> list[TrainRun]:
    network = {"neurons": 30, "activation": "linear"}
    run = parse_run({"task": {"decays": [0.9]}, "network": network, "training": {"steps": 300}})
    assert isinstance(run, TrainRun)
    return [run]


@torch.no_grad()
def measure(results: Results, profile: Profile) -> Measured:
    (run,) = runs(profile)
    pulse = torch.zeros(1, 20, 1)
    pulse[0, 0] = 1.0
    return {"output": results[run].network.outputs(pulse)[0, :, 0].numpy()}


def claims(measured: Measured) -> list[Claim]:
    return [
        Claim(
            id="decay.rate",
            where="Results",
            statement=r"The output decays by $\gamma = 0.9$ in each step.",
            criterion="the mean factor over 19 steps is within 2 % of 0.9",
            expected="0.9",
            measured=float((measured["output"][-1] / measured["output"][0]) ** (1 / 19)),
            holds=lambda factor: abs(factor / 0.9 - 1) < 0.02,
        )
    ]


def draw(measured: Measured) -> Drawing:
    drawing = Drawing()
    drawing.subplots().plot(measured["output"])
    return drawing
