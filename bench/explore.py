"""The page of `rni explore` in Chromium: how large, how soon, how fast, and how near to Python."""

import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import rni
from bench.measuring import Lines
from rni.weights import random_matrix
from tests.browser import CHROMIUM, Browser

TITLE = "A network in the page"
ABOUT = (
    "Debian's Chromium, headless and without a graphics processor, a window of 1400 x 900. First picture: from the "
    "start of loading to the first frame with all views in it. Frames: a second, at 60 steps a second, over 5 s. "
    "Difference: the largest between outputs of the page and of Python in float64, over 1000 steps of white noise, "
    "relative to their root mean square."
)
SECONDS = 5


def designed(neurons: int) -> rni.Network:
    return rni.design(rni.Integration([0.99, 0.9]), neurons).network


def dense(neurons: int) -> rni.Network:
    """A designed network with a little noise on every weight, so that no few modes hold W."""
    net = designed(neurons)
    w = net.recurrent.matrix() + random_matrix(neurons, 0.01, torch.Generator().manual_seed(0))
    return rni.Network(net.task, net.encoders, net.decoders, w.float(), net.f)


def measured(net: rni.Network, name: str, folder: Path) -> str:
    page = rni.explore(net, folder / f"{name}.html")
    with Browser(folder / name) as browser:
        browser.open(page)
        browser.wait_for("performance.getEntriesByName('picture').length > 0")
        first = browser.evaluate("performance.getEntriesByName('picture')[0].startTime")
        time.sleep(2)
        before = browser.evaluate("[rni.frames(), performance.now()]")
        time.sleep(SECONDS)
        after = browser.evaluate("[rni.frames(), performance.now()]")
        x = torch.randn(1, 1000, net.channels, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        shown = np.array(browser.evaluate(f"rni.simulate({x[0].tolist()})"))
    with torch.no_grad():
        y = net.double().outputs(x)[0].numpy()
    frames = 1000 * (after[0] - before[0]) / (after[1] - before[1])
    difference = np.abs(shown - y).max() / np.sqrt((y**2).mean())
    size = page.stat().st_size / 1e6
    return f"| {name} | {size:.2f} | {first / 1000:.2f} | {frames:.0f} | {difference:.1e} |"


def pages() -> Lines:
    yield "| network | page, MB | first picture, s | frames | difference |"
    yield "|---|---|---|---|---|"
    if CHROMIUM is None:
        yield "| chromium is not installed | | | | |"
        return
    networks = {
        "1000 neurons, factored": designed(1000),
        "1000 neurons, dense": dense(1000),
        "10 000 neurons, factored": designed(10_000),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, net in networks.items():
            yield measured(net, name, Path(folder))


def tables() -> dict[str, Lines]:
    return {"Pages": pages()}
