"""Fig 19: a sigmoidal head reads a context-dependent decision from the states of a fixed integrator."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from torch import Tensor, nn

from rni.networks.network import Network
from rni.papers import Claim, Measured, Profile, Results
from rni.papers.fanthomme2021.trainings import Run, training_run
from rni.plots.style import CHANNELS, TARGET, panels
from rni.tasks.inputs import white_noise
from rni.training import Adam
from rni.training.transfer import Head, boundary_distance, context, fit_head

DECAYS = (0.8, 0.75, 0.75)
SEQUENCES = ((512, 40), (256, 40), (32, 400))  # (sequences, steps): for training the head, and for two tests
BINS = 10
BATCH = 32  # sequences in each step of a head's descent
SHORTER = (
    "batches of 32 sequences instead of 1024, 1000 steps instead of 10000 at a rate that falls from 0.5 / n, ten "
    "times theirs for 1000 neurons, to 0; two networks (one in the quick profile, four in the full one)"
)


def specification(profile: Profile, loss: str = "batch", seed: int = 0) -> Run:
    """Return a sigmoid network of three channels, trained with its decoders by Adam on the proxy or on batches."""
    training: dict[str, Any] = {
        "loss": loss,
        "optimizer": "adam",
        "learning_rate": 0.5 / profile.neurons,
        "schedule": "cosine",
        "train": "recurrent+decoders",
    }
    training |= (
        {"points": 64, "current_weight": 0.1, "steps": 1500}
        if loss == "proxy"
        else {"duration": 10, "batch": 32, "steps": 1000}
    )
    network = {"neurons": profile.neurons, "activation": "sigmoid"}
    return training_run(DECAYS, network, seed=seed, **training)


def integrators(profile: Profile) -> list[Run]:
    return [specification(profile, seed=seed) for seed in range(profile.seeds(4, few=2, quick=1))]


def untrained(profile: Profile) -> Network:
    """Return the same kind of network with random weights of spectral radius 1."""
    network = {"neurons": profile.neurons, "activation": "sigmoid", "initial_radius": 1.0}
    return training_run(DECAYS, network).build()


def correct(
    code: Callable[[Tensor], Tensor],
    inputs: Sequence[Tensor],
    labels: Sequence[Tensor],
    fit: Callable[[Tensor, Tensor], Head] = fit_head,
) -> list[Tensor]:
    """Train a head on the first sequences and return, for each of the others, whether it is right at each step."""
    head = fit(code(inputs[0]), labels[0])
    return [(head(code(x)) > 0.5) == label for x, label in zip(inputs[1:], labels[1:], strict=True)]


def descended_head(states: Tensor, labels: Tensor) -> Head:
    """Train a head by Adam on the squared error of batches of sequences, with the authors' rate and steps."""
    u, adam, generator = nn.Parameter(torch.zeros(states.shape[-1])), Adam(), torch.Generator().manual_seed(0)
    with torch.enable_grad():
        for _ in range(1000):
            some = torch.randint(len(states), (BATCH,), generator=generator)
            error = (Head(u)(states[some]) - labels[some].to(states)).square().mean()
            adam.move([(u, torch.autograd.grad(error, u)[0])], 5e-3)
    return Head(u.detach())


def with_constant(code: Tensor) -> Tensor:
    r"""Add a constant feature, because a code of zero mean needs a free threshold instead of the fixed $\theta$."""
    return torch.cat([code, torch.ones_like(code[..., :1])], -1)


def runs(profile: Profile) -> list[Run]:
    return [*integrators(profile), specification(profile, "proxy")]


@torch.no_grad()
def measure(results: Results, profile: Profile) -> Measured:
    generator = torch.Generator().manual_seed(0)
    inputs = [white_noise(*shape, 3, generator) for shape in SEQUENCES]
    nets = [results[each].network for each in integrators(profile)]
    integrals = [nets[0].task.targets(x) for x in inputs]
    labels = [context(y) for y in integrals]
    found = [correct(lambda x, net=net: net(x)[0], inputs, labels) for net in nets]
    random, proxy = untrained(profile), results[specification(profile, "proxy")].network
    descended = [correct(lambda x, net=net: net(x)[0], inputs, labels, descended_head) for net in nets]
    codes: dict[str, Callable[[Tensor], Tensor]] = {
        "proxy": lambda x: proxy(x)[0],
        "currents": lambda x: with_constant(nets[0].currents(x)),
        "integrals": lambda x: with_constant(nets[0].task.targets(x)),
        "random": lambda x: with_constant(random(x)[0]),
    }
    compared = {name: [float(c.double().mean()) for c in correct(code, inputs, labels)] for name, code in codes.items()}
    flat = torch.cat([y.flatten(0, 1) for y in integrals[1:]])
    distances = boundary_distance(flat, torch.cat([label.flatten() for label in labels[1:]]))
    wrong = ~torch.stack([torch.cat([c.flatten() for c in each]) for each in found])
    order = distances.argsort()
    x = inputs[2][:1, :120]
    head = fit_head(nets[0](inputs[0])[0], labels[0])
    return {
        "accuracy": np.array([[float(c.double().mean()) for c in each] for each in found]),
        "descended_accuracy": np.array([[float(c.double().mean()) for c in each] for each in descended]),
        **{f"{name}_accuracy": np.array(values) for name, values in compared.items()},
        "distance": np.array([float(d.mean()) for d in distances[order].chunk(BINS)]),
        "errors": np.array([float(w.double().mean()) for w in wrong[:, order].chunk(BINS, dim=1)]),
        "furthest_share": float(wrong[:, order[len(order) // 2 :]].sum() / max(1, int(wrong.sum()))),
        "output": head(nets[0](x)[0])[0].numpy(),
        "outputs_of_integrals": nets[0].outputs(x)[0].numpy(),
        "integrals": integrals[2][0, :120].numpy(),
        "label": labels[2][0, :120].numpy(),
    }


def claims(measured: Measured) -> list[Claim]:
    states = measured["accuracy"].mean()
    controls = {name: measured[f"{name}_accuracy"].mean() for name in ("integrals", "currents", "random")}
    return [
        Claim(
            id="fig19.context",
            where="Appendix on transfer learning, Fig 19",
            statement="A sigmoidal head on the states of a fixed integrator decides by $y_0$ or $y_1$ as $y_2$ says.",
            criterion="at least 95 % of the steps of new sequences of white noise right, on average over the networks, "
            "for 40 steps, as trained, and for 400",
            expected="behaves as shown in Fig 19",
            measured=dict(zip(("40 steps", "400 steps"), map(float, measured["accuracy"].mean(0)), strict=True)),
            holds=lambda m: min(m.values()) >= 0.95,
            settings=f"{SHORTER}; a head of least cross-entropy by L-BFGS",
        ),
        Claim(
            id="fig19.boundaries",
            origin="ours",
            where="Appendix on transfer learning, Fig 19",
            statement="What is wrong lies near the decision boundaries.",
            criterion="the half of the samples furthest from samples of the other label has less than a tenth of the "
            "errors",
            expected="near the boundaries",
            measured=measured["furthest_share"],
            holds=lambda share: share < 0.1,
        ),
        Claim(
            id="fig19.mixed-activity",
            origin="ours",
            where="Appendix on transfer learning",
            statement="Mixed, non-linear activity of an integrator is what makes it possible: not the integrals or the "
            "currents, which are linear in them, nor the states of a random network.",
            criterion="the head on states is right at least 15 percentage points more often than on each of those, "
            "with a free threshold there",
            expected="better on states",
            measured={"states": states} | controls,
            holds=lambda m: all(m["states"] - m[name] >= 0.15 for name in controls),
        ),
        Claim(
            id="fig19.any-training",
            where="Appendix on transfer learning",
            statement="Any of the trainings of the integrator will do: proxy loss, or batches of sequences.",
            criterion="accuracies within 3 percentage points",
            expected="any of the methods",
            measured={"batch": states, "proxy": measured["proxy_accuracy"].mean()},
            holds=lambda m: abs(m["proxy"] - m["batch"]) < 0.03,
            settings=SHORTER,
        ),
        Claim(
            id="fig19.descent",
            where="Appendix on transfer learning",
            statement="The vector u of the head is easy to learn by batch descent.",
            criterion="1000 steps of Adam at the authors' rate on the squared error, with batches of sequences: right "
            "at most 5 percentage points less often than the head of least cross-entropy",
            expected="easy",
            measured={"descent": measured["descended_accuracy"].mean(), "least cross-entropy": states},
            holds=lambda m: m["least cross-entropy"] - m["descent"] <= 0.05,
            settings=f"{SHORTER}; batches of {BATCH} sequences for the head",
        ),
    ]


def draw(measured: Measured) -> Drawing:
    drawing, (output, bars, integrals, errors) = panels(2, 2, width=5.2, height=2.8, width_ratios=[1.6, 1])
    steps = np.arange(len(measured["label"]))
    output.step(steps, measured["label"], where="mid", color=TARGET, linewidth=4, label="rule")
    output.step(steps, measured["output"], where="mid", color="black", linewidth=1.2, label="output")
    output.set(ylabel="$out_t$", xlabel="time step $t$", ylim=(-0.1, 1.4), yticks=[0, 0.5, 1])
    for c, colour in enumerate(CHANNELS[:3]):
        integrals.plot(steps, measured["integrals"][:, c], color=colour, alpha=0.35, linewidth=4)
        integrals.plot(steps, measured["outputs_of_integrals"][:, c], color=colour, linewidth=1.2, label=f"$y_{c}$")
    integrals.axhline(0, color=TARGET, linewidth=0.8, zorder=0)
    integrals.set(xlabel="time step $t$", ylabel="integrals", ylim=(-5, 6.5))
    for axis in (output, integrals):
        _shade(axis, measured["integrals"][:, 2])
        axis.margins(x=0)
        axis.legend(frameon=False, fontsize="small", ncols=3, loc="upper right")
    shown = {"states": "states", "descended": "head by\ndescent", "proxy": "states,\nproxy loss"}
    shown |= {"currents": "currents", "integrals": "integrals", "random": "random\nnetwork"}
    accuracies = [measured["accuracy"].mean(0), measured["descended_accuracy"].mean(0)]
    accuracies += [measured[f"{name}_accuracy"] for name in list(shown)[2:]]
    for k, (name, colour) in enumerate((("40 steps", "0.35"), ("400 steps", "0.7"))):
        places = np.arange(len(shown)) + 0.4 * k - 0.2
        bars.bar(places, [100 * each[k] for each in accuracies], 0.4, color=colour, label=name)
    bars.plot([-0.2, 0.2] * len(measured["accuracy"]), 100 * measured["accuracy"].ravel(), "k.", markersize=3)
    bars.set_xticks(range(len(shown)), labels=list(shown.values()), fontsize="x-small")
    bars.set(ylabel="steps right (%)", ylim=(50, 115), yticks=range(50, 101, 10))
    bars.legend(frameon=False, fontsize="small", ncols=2, loc="upper right")
    errors.plot(measured["distance"], 100 * measured["errors"], "o-", color="black", markersize=4)
    errors.set(xlabel="distance of $\\bar y$ from the other label", ylabel="steps wrong (%)")
    return drawing


def _shade(axis: Axes, cue: np.ndarray) -> None:
    """Shade the background in the colour of the channel that the cue selects."""
    steps = np.arange(len(cue))
    for chosen, colour in ((cue < 0, CHANNELS[0]), (cue >= 0, CHANNELS[1])):
        options: dict[str, Any] = {"color": colour, "alpha": 0.13, "linewidth": 0, "zorder": -1}
        axis.bar(steps[chosen], 1, 1.0, transform=axis.get_xaxis_transform(), **options)


CAPTION = (
    "A: output of the head over a sequence of white noise it has not seen; shaded in the colour of the channel that "
    "decides, $y_0$ where $y_2 < 0$ and $y_1$ where $y_2 > 0$. C: the three integrals (pale) and the network's own "
    "outputs. B: accuracy on new sequences of 40 and 400 steps, of the same head on the states of integrators trained "
    "on batches (points: networks), where the head is the one of least cross-entropy or learnt by descent, and on the "
    "proxy loss, on the currents of one of them, on the integrals themselves and on a random network. D: errors in "
    "tenths of the samples, by the distance of the integrals to the nearest sample of the other label. Three "
    "sigmoidal channels, decays 0.8, 0.75, 0.75; inputs N(0, 1), whose integrals stay in the range trained on. The "
    "head minimises cross-entropy on 512 sequences of 40 steps by L-BFGS, or the squared error by the authors' Adam."
)
COMPUTES = True
