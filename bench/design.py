"""Designed integrators against their goals, and against what people use today."""

import importlib
import time
from importlib.util import find_spec

import numpy as np
import torch
from torch import Tensor, nn

import rni
from bench.measuring import DECAYS as RELU_DECAYS
from bench.measuring import Lines
from rni.analysis import relative_error, robustness
from rni.analysis.perturbations import noisy_weights
from rni.tasks.inputs import bursts, white_noise

DURATION, TRAJECTORIES = 2000, 16
SIGMOID_DECAYS = (0.8, 0.75, 0.77)
GOALS = {  # (activation, channels): error, seconds
    ("relu", 1): (1e-12, 0.2),
    ("relu", 2): (1e-3, 2.0),
    ("relu", 3): (5e-3, 20.0),
    ("relu", 5): (5e-2, 20.0),
    ("sigmoid", 1): (1e-2, 0.2),
    ("sigmoid", 2): (2e-2, 2.0),
    ("sigmoid", 3): (4e-2, 20.0),
}
REGULARISATIONS = (0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)  # the first is Nengo's own; at 1e-8 its solver fails
ADAM_RATES = (1e-3, 1e-4)


def noise(channels: int) -> Tensor:
    return white_noise(TRAJECTORIES, DURATION, channels, torch.Generator().manual_seed(1))


def goals(neurons: int) -> Lines:
    yield "| network | error, goal | error | seconds, goal | seconds | norm of W | bound for any duration |"
    yield "|---|---|---|---|---|---|---|"
    rni.design(rni.Integration(0.9), 50)
    for (activation, channels), (error, seconds) in GOALS.items():
        decays = RELU_DECAYS if activation == "relu" else SIGMOID_DECAYS
        designs = [rni.design(rni.Integration(decays[:channels]), neurons, activation, seed=k) for k in range(3)]
        worst = max(max(design.error(DURATION)) for design in designs)
        took = sorted(design.seconds for design in designs)[1]
        norms = " ".join(f"{design.norm:.2f}" for design in designs)
        row = f"| {activation}, D = {channels} | {error:.0e} | {worst:.1e} | {seconds:g} | {took:.3f} | {norms} "
        yield row + f"| {rni.certify(designs[0].network)} |"


def nengo_error(decays: tuple[float, ...], neurons: int, regularisation: float) -> tuple[float, float]:
    """One ensemble that represents all integrals and feeds them back, decayed, through one step of delay."""
    nengo = importlib.import_module("nengo")  # not a dependency

    nengo.rc["decoder_cache"]["enabled"] = "False"
    task, inputs = rni.Integration(decays), noise(len(decays))
    targets = task.targets(inputs.double()).numpy()
    radius = 1.1 * float(np.linalg.norm(targets, axis=2).max())
    outputs, solver = [], nengo.solvers.LstsqL2(reg=regularisation)
    with nengo.Network(seed=0) as model:
        signal = {"x": inputs[0].numpy()}
        source = nengo.Node(lambda t: signal["x"][min(round(t) - 1, DURATION - 1)], size_out=len(decays))
        options = {"neuron_type": nengo.RectifiedLinear(), "radius": radius}
        ensemble = nengo.Ensemble(neurons, len(decays), **options)
        decay = np.diag(decays)
        nengo.Connection(source, ensemble, transform=decay, synapse=None)
        nengo.Connection(ensemble, ensemble, transform=decay, synapse=0, solver=solver)
        readout = nengo.Node(size_in=len(decays))
        nengo.Connection(ensemble, readout, synapse=None, solver=solver)
        probe = nengo.Probe(readout)
    begun = time.perf_counter()
    with nengo.Simulator(model, dt=1.0, progress_bar=False, optimize=False) as simulator:
        built = time.perf_counter() - begun
        for x in inputs[:4].numpy():
            signal["x"] = x
            simulator.reset()
            simulator.run_steps(DURATION, progress_bar=False)
            outputs.append(simulator.data[probe].copy())
            simulator.clear_probes()
    error = ((np.stack(outputs) - targets[:4]) ** 2).sum((0, 1)) / (targets[:4] ** 2).sum((0, 1))
    return float(np.sqrt(error.max())), built


def adam_errors(decays: tuple[float, ...], neurons: int, seconds: float, rate: float) -> tuple[float, float]:
    """A `torch.nn.RNN` with a linear readout, all of it trained on white noise of 50 steps: over 2000, and over 50."""
    torch.manual_seed(0)
    task, channels = rni.Integration(decays), len(decays)
    rnn = nn.RNN(channels, neurons, nonlinearity="relu", batch_first=True)
    readout = nn.Linear(neurons, channels)
    adam = torch.optim.Adam([*rnn.parameters(), *readout.parameters()], lr=rate)
    begun = time.perf_counter()
    while time.perf_counter() - begun < seconds:
        x = torch.randn(32, 50, channels)
        loss = (readout(rnn(x)[0]) - task.targets(x)).square().mean()
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(rnn.parameters(), 1.0)
        adam.step()
    with torch.no_grad():
        x = noise(channels)
        targets = task.targets(x.double())
        errors, sizes = (readout(rnn(x)[0]).double() - targets).square(), targets.square()
    long, short = (errors[:, :steps].sum((0, 1)) / sizes[:, :steps].sum((0, 1)) for steps in (DURATION, 50))
    return float(long.sqrt().max()), float(short.sqrt().max())


def trained(decays: tuple[float, ...], neurons: int) -> tuple[rni.Network, float]:
    specification = rni.parse_run({"task": {"decays": decays}, "network": {"neurons": neurons}})
    begun = time.perf_counter()
    return rni.run(specification).network, time.perf_counter() - begun


def rivals(neurons: int, networks: dict[int, rni.Network]) -> Lines:
    """`networks` receives the trained ones, by channels."""
    yield "| ReLU, D | design | Nengo, as it comes | Nengo, best regularisation | our training | torch.nn.RNN, Adam |"
    yield "|---|---|---|---|---|---|"
    for channels in (1, 2, 3, 5):
        decays = RELU_DECAYS[:channels]
        design = rni.design(rni.Integration(decays), neurons)
        cells = [f"{float(relative_error(design.network, noise(channels)).max()):.1e}, {design.seconds:.3f} s"]
        if find_spec("nengo"):
            errors = {reg: nengo_error(decays, neurons, reg) for reg in REGULARISATIONS}
            best = min(errors, key=lambda reg: errors[reg][0])
            first, chosen = errors[REGULARISATIONS[0]], errors[best]
            cells += [f"{first[0]:.1e}, {first[1]:.2f} s", f"{chosen[0]:.1e}, {chosen[1]:.2f} s (reg {best:g})"]
        else:
            cells += ["not installed"] * 2
        networks[channels], seconds = trained(decays, neurons)
        cells.append(f"{float(relative_error(networks[channels], noise(channels)).max()):.1e}, {seconds:.0f} s")
        adam = {rate: adam_errors(decays, neurons, seconds, rate) for rate in ADAM_RATES}
        rate = min(adam, key=lambda rate: adam[rate])
        long, short = adam[rate]
        cells.append(f"{long:.1e}, {seconds:.0f} s ({short:.1e} over 50 steps, rate {rate:g})")
        yield f"| {channels} | {' | '.join(cells)} |"


def disturbed(networks: dict[int, rni.Network]) -> Lines:
    yield "| network | undisturbed | 1 % noise on W | added by it | 1 % silenced | 1 % noise on states | norm of W |"
    yield "|---|---|---|---|---|---|---|"
    for channels, other in networks.items():
        made = rni.design(other.task, other.neurons, encoders=other.encoders, decoders=other.decoders).network
        for name, net in (("designed", made), ("trained", other)):
            report = robustness(net, (0.01,), draws=8)
            values = (report.undisturbed, report.weights[0.01], cost_of_noise(net))
            values = (*values, report.neurons[0.01], report.state[0.01])
            norm = float(net.recurrent.matrix().detach().norm())
            yield f"| {name}, D = {channels} | {' | '.join(f'{v:.1e}' for v in values)} | {norm:.2f} |"


@torch.no_grad()
def cost_of_noise(net: rni.Network, draws: int = 8) -> float:
    """How far 1 % of noise on W moves the outputs, relative to the targets."""
    x = bursts(8, 400, net.channels, torch.Generator().manual_seed(0)).to(net.encoders)
    quiet, scale = net.outputs(x), net.task.targets(x).square().sum((0, 1))
    moved = [noisy_weights(net, 0.01, torch.Generator().manual_seed(k)).outputs(x) - quiet for k in range(draws)]
    return sum(float((y.square().sum((0, 1)) / scale).sqrt().max()) for y in moved) / draws


def scale() -> Lines:
    yield "| ReLU | seconds | residual of the outputs | residual of the currents |"
    yield "|---|---|---|---|"
    for neurons, channels in ((1_000_000, 1), (100_000, 2), (100_000, 5)):
        design = rni.design(rni.Integration(RELU_DECAYS[:channels]), neurons)
        residuals = f"{max(design.output_residuals):.1e} | {max(design.current_residuals):.1e}"
        yield f"| n = {neurons}, D = {channels} | {design.seconds:.2f} | {residuals} |"


def tables(neurons: int = 1000) -> dict[str, Lines]:
    networks: dict[int, rni.Network] = {}
    return {
        "Goals (white noise for ReLU, bursts for sigmoids; the worst of three seeds)": goals(neurons),
        "Against others (error, time to get there; white noise)": rivals(neurons, networks),
        "Disturbed, trained and designed with the same vectors (bursts, 400 steps)": disturbed(networks),
        "At scale": scale(),
    }


TITLE = "Designed integrators"
ABOUT = """1000 neurons. Every error is relative, over 2000 steps, the largest of the channels. The rivals: Nengo (extra
`bench`), rectified-linear neurons with one step of delay, which makes its task exactly ours; a `torch.nn.RNN` that Adam
trains for as long as our own training takes; and that training."""
