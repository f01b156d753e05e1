"""Fixed points, against descent by Adam from sampled states, as FixedPointFinder and its kin find them."""

import time

import torch
from torch import Tensor

import rni
from bench.measuring import Lines
from rni.analysis.latents import latent, spread, visited
from rni.analysis.stationary import FIXED, distinct
from rni.networks.vanilla import VanillaRNN
from rni.weights import Dense, LowRank, Weights

ADAM_STEPS, ADAM_STARTS, RATE = 2000, 128, 1e-2


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def network(w: Weights, leak: float = 0.2) -> VanillaRNN:
    n = w.neurons
    return VanillaRNN(w, normal(n, 2), rni.activations.make("tanh"), torch.zeros(n).double(), leak=leak, form="current")


def networks() -> dict[str, VanillaRNN]:
    two, large = (torch.linalg.qr(normal(n, 2)).Q * n**0.5 for n in (300, 100_000))
    gains = torch.tensor([2.0, 1.6], dtype=torch.float64)
    bulk = [0.5 * normal(n, n) / n**0.5 for n in (300, 1000)]
    pattern = normal(1000, 1)
    return {
        "two patterns, rank 2, n = 300": network(LowRank(two, two * gains / 300)),
        "the same in a random matrix, n = 300": network(Dense(two @ (two * gains).T / 300 + bulk[0])),
        "one pattern in a random matrix, n = 1000": network(Dense(1.8 * pattern @ pattern.T / 1000 + bulk[1])),
        "random, radius 0.9, n = 1000": network(Dense(1.8 * bulk[1])),
        "two patterns, rank 2, n = 100000": network(LowRank(large, large * gains / 100_000)),
    }


def by_adam(net: VanillaRNN, steps: int) -> tuple[int, float]:
    r"""Descent on $|F(v) - v|^2$ of all states in one batch: distinct points below 1e-4, and the median residual."""
    reduced = latent(net)
    with torch.no_grad():
        starts = visited(net, reduced)
    chosen = starts[torch.linspace(0, len(starts) - 1, ADAM_STARTS).round().long()]
    size = spread(starts)
    state = reduced.currents(chosen).detach().requires_grad_()
    adam = torch.optim.Adam([state], lr=RATE * size / net.neurons**0.5)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
    w = net.recurrent.requires_grad_(False)
    for _ in range(steps):
        adam.zero_grad()
        (w(torch.tanh(state)) - state).square().sum().backward()
        adam.step()
        schedule.step()
    with torch.no_grad():
        kappa = reduced.project(torch.tanh(state))
        pulls = reduced.pull(kappa).norm(dim=1)
        found, _ = (
            distinct(reduced, kappa[pulls < 1e-4 * size], 1e-2 * size) if bool((pulls < 1e-4 * size).any()) else ([], 0)
        )
    return len(found), float(pulls.median()) / size


def against_adam(largest: int = 1000) -> Lines:
    yield "| network | ours: points | largest residual | s | Adam: points | median residual | s |"
    yield "|---|---|---|---|---|---|---|"
    for name, net in networks().items():
        begun = time.process_time()
        found = rni.fixed_points(net)
        seconds = time.process_time() - begun
        residual = max((point.speed for point in found.points), default=0.0) / found.spread
        row = f"| {name} | {found.found} | {residual:.0e} | {seconds:.1f} "
        if net.neurons > largest:
            yield row + "| - | - | - |"
            continue
        steps = ADAM_STEPS if net.neurons < 1000 else ADAM_STEPS // 4
        begun = time.process_time()
        count, median = by_adam(net, steps)
        yield row + f"| {count} | {median:.0e} | {time.process_time() - begun:.0f} ({steps} steps) |"


def tables() -> dict[str, Lines]:
    return {"Fixed points, from the same visited states": against_adam()}


TITLE = "Dynamics"
ABOUT = f"""Leaky networks (tanh, current form, leak 0.2) with known fixed points: two patterns have five (two
attractors, two saddles, the origin) or some more, one pattern three, a contracting random network one. Residuals are in
parts of the visited states' spread; ours are fixed below {FIXED:.0e}. Adam's way: {ADAM_STARTS} states at a rate that
falls to 0; points below 1e-4 that are further than 1e-2 apart. Processor time."""
