"""Networks with process noise and known answers, in the formats of the field: what noise does is told, not hidden."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.io
import torch
from told import of, there

from rni import Analysis, Integration, Network, VanillaRNN, analyze
from rni.files import foreign, native
from rni.pages.analysis import write_page

N, NOISE = 30, 0.02
RNG = np.random.default_rng(0)
Q = np.linalg.qr(RNG.normal(size=(N, 2)))[0]
G = RNG.normal(size=(N, N))
X = torch.from_numpy(RNG.normal(size=(32, 100, 1)))
TWO = torch.from_numpy(RNG.normal(size=(128, 200, 2)))
DECAYS = (0.98, 0.9)
SMALL = 1e-3  # inputs to a tanh, for which it is a line


def latent(step, leak):
    r"""W for which the latent coordinates in Q have this step at rest, $1 - \alpha + \alpha W$."""
    k = len(step)
    return Q[:, :k] @ ((np.array(step) - (1 - leak) * np.eye(k)) / leak) @ Q[:, :k].T


def feedforward():
    w = np.zeros((N, N))
    w[10:20, :10], w[20:, 10:20] = G[:10, :10] / 3, G[10:20, :10] / 3
    return w


def turn(size, angle):
    c, s = size * math.cos(angle), size * math.sin(angle)
    return [[c, -s], [s, c]]


KNOWN = {  # verdict, evidence, W for a leak, U
    "bistable": ("decides", "2 attractors", lambda leak: latent([[1 + 0.5 * leak]], leak), Q[:, :1]),
    "line": ("remembers", "a line of slow points", lambda leak: latent([[1.0]], leak), 3 * Q[:, :1]),
    "oscillator": ("oscillates", "goes on without", lambda leak: latent(turn(1 + 0.3 * leak, 0.3), leak), Q[:, :1]),
    "layers": ("forgets", "feed-forward", lambda _: feedforward(), np.r_[G[:10, :1], np.zeros((20, 1))]),
    "random": ("forgets", "random matrix", lambda _: 0.5 * G / N**0.5, G[:, :1]),
}


def psychrnn(path, w, u, d):
    masks: dict[str, Any] = {"rec_connectivity": np.ones((N, N)), "Dale_rec": np.eye(N), "Dale_out": np.eye(N)}
    np.savez(path, W_rec=w, W_in=u, W_out=d.T, b_rec=np.zeros(N), b_out=np.zeros(u.shape[1]), **masks)


def state_dict(**arrays):
    return {name: torch.from_numpy(np.ascontiguousarray(values)) for name, values in arrays.items()}


def low_rank(path, w, u, d):
    left, values, right = np.linalg.svd(w)
    k = (values > 1e-9).sum()
    torch.save(state_dict(m=N * left[:, :k] * values[:k], n=right[:k].T, wi=u.T, wo=N * d), path)


def tutorial(path, w, u, d):
    weights = {"rnn.input2h.weight": u, "rnn.h2h.weight": w, "fc.weight": d.T}
    torch.save(state_dict(**weights, **{"rnn.h2h.bias": np.zeros(N)}), path)


def matlab(path, w, u, d):
    scipy.io.savemat(path, {"net": {"J": w, "B": u, "Z": d}})


BY_HAND = {"form": "current", "names": {"recurrent": "net.J", "input_weights": "net.B", "decoders": "net.Z"}}
FORMATS = {
    "PsychRNN": ("w.npz", psychrnn, 0.2, {"leak": 0.2, "activation": "tanh"}),
    "low-rank": ("w.pt", low_rank, 0.2, {}),
    "full-rank": ("w.pt", lambda p, w, u, d: torch.save(state_dict(wrec=w, wi=u.T, wo=d), p), 0.2, {}),
    "tutorial": ("w.pt", tutorial, 0.2, {"leak": 0.2, "activation": "tanh"}),
    "MATLAB": ("w.mat", matlab, 0.2, {"leak": 0.2, "activation": "tanh", **BY_HAND}),
    "Keras": ("w.npz", lambda p, w, u, d: np.savez(p, u.T, w.T, np.zeros(N), d), 1.0, {}),
    "ours": (
        "w.npz",
        lambda p, w, u, d: np.savez(p, recurrent=w, input_weights=u, decoders=d, activation="tanh", leak=0.5),
        0.5,
        {},
    ),
}


def made(code, folder, w, u, d, noise):
    name, write, leak, options = FORMATS[code]
    write(folder / name, w(leak), u, d)
    net = foreign.read(folder / name, noise=noise, **options)
    assert isinstance(net, VanillaRNN)
    assert net.leak == leak
    return net


QUICK = ("PsychRNN", "Keras", "tutorial")  # both forms, with leak and without; the rest takes 2 s each
EACH = [code if code in QUICK else pytest.param(code, marks=pytest.mark.slow) for code in FORMATS]


@pytest.mark.parametrize("code", EACH)
def test_noisy_networks_are_called_what_they_are_in_every_format(code, tmp_path):
    for kind, evidence, w, u in KNOWN.values():
        found = analyze(made(code, tmp_path, w, u, u / np.sum(u**2), NOISE), inputs=X)
        assert found.verdict.kind == kind, found.verdict
        assert evidence in found.verdict.evidence or (code == "low-rank" and kind == "forgets")  # factors have no zeros
        assert f"noise of {NOISE} moves its outputs by " in found.verdict.evidence
        assert 0 < there(found.noisy).parts[0] < 0.5


@pytest.mark.parametrize("code", FORMATS)
def test_decays_of_noisy_outputs_are_the_networks_in_every_format(code, tmp_path):
    """Noise is a tenth (without leak) to a half (leak 0.2) of the outputs; nothing of it is taken away from them."""
    net = made(code, tmp_path, lambda leak: latent(np.diag(DECAYS), leak), SMALL * Q, Q / SMALL, SMALL / 10)
    found = analyze(net, inputs=TWO)
    assert found.verdict.kind == "integrates"
    assert found.fitted_decays == pytest.approx(DECAYS, rel=2e-3)
    noisy = there(found.noisy)
    assert noisy.decays == pytest.approx(DECAYS, rel=0.01)
    assert noisy.decays != found.fitted_decays
    assert 0.05 < min(noisy.parts) < noisy.error < 1


def test_a_network_file_has_its_decays_under_noise(tmp_path):
    """Encoders are fed through W; the noise, added to h, is not."""
    net = Network(Integration(DECAYS), torch.from_numpy(Q), torch.from_numpy(Q), latent_weights(), "linear")
    native.save(net, tmp_path / "net.safetensors")
    found = of(Analysis, analyze(foreign.read(tmp_path / "net.safetensors", noise=0.3), inputs=TWO))
    noisy = there(found.noisy)
    assert noisy.decays == pytest.approx(DECAYS, rel=0.01)
    assert max(found.errors["inputs"][200]) < 1e-6
    for c, decay in enumerate(DECAYS):  # y <- decay (y + x) + noise
        spread = 0.3 / math.sqrt(1 - decay**2)
        assert noisy.deviations[c] == pytest.approx(spread, rel=0.3)
        assert noisy.errors["inputs"][200][c] == pytest.approx(0.3 / decay, rel=0.1)


def latent_weights():
    return torch.from_numpy(latent(np.diag(DECAYS), 1.0))


def linear(noise, **more):
    q = torch.from_numpy(Q)
    net = VanillaRNN.of(Network(Integration(DECAYS), q, q, latent_weights(), "linear"))
    return replace(net, noise=noise, **more)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_outputs_of_several_inputs_are_those_of_each(noise):
    several = [TWO[:3], TWO[3:8, :50], TWO[8:12]]
    with torch.no_grad():
        for found, inputs in zip(linear(noise).outputs_of(several), several, strict=True):
            torch.testing.assert_close(found, linear(noise).outputs(inputs))


def test_errors_grow_with_noise_and_nothing_else_changes():
    found = [analyze(linear(noise), inputs=X.expand(-1, -1, 2).clone()) for noise in (0.0, 0.1, 0.2)]
    assert found[0].noisy is None
    assert [each.verdict.kind for each in found] == ["integrates"] * 3
    errors = [max(found[0].errors["inputs"][100]), *(there(each.noisy).error for each in found[1:])]
    assert errors[0] < 1e-6
    assert errors[2] == pytest.approx(2 * errors[1], rel=1e-6)
    for each in found[1:]:
        assert each.errors == found[0].errors
        assert each.fitted_decays == found[0].fitted_decays
        assert each.linearity == found[0].linearity


def test_a_readout_that_is_fitted_is_fitted_to_noisy_activity():
    """A readout of activity without noise has weights of any size where there is nothing, which noise would show."""
    net = linear(0.3, decoders=None, offset=None, task=None)
    found = analyze(net, inputs=TWO)
    assert found.readout == "fitted"
    noisy = there(found.noisy)
    assert noisy.decays == pytest.approx(DECAYS, rel=0.01)
    assert noisy.errors["inputs"][200] == pytest.approx([0.3 / decay for decay in DECAYS], rel=0.25)


@torch.no_grad()
def test_process_noise_has_nothing_of_inputs_from_the_same_seed():
    """As inputs of one trial and the noise of one neuron have the same shapes."""
    one = torch.ones(1, 1)
    net = VanillaRNN.of(Network(Integration(0.5), one, one, torch.zeros(1, 1), "linear"))
    x = torch.randn(1, 1000, 1, generator=torch.Generator().manual_seed(0))
    noise = replace(net, noise=1.0).run(0 * x)
    assert float(noise.std()) == pytest.approx(1, rel=0.1)
    assert abs(float((noise * x).mean())) < 0.1


def test_what_noise_does_is_in_the_text_in_json_and_on_the_page(tmp_path):
    found = analyze(linear(0.1), inputs=X.expand(-1, -1, 2).clone())
    told = json.loads(found.to_json())["noisy"]
    assert told["noise"] == 0.1
    assert told["errors"]["inputs"]["100"] == list(there(found.noisy).errors["inputs"][100])
    assert {"decays", "deviations", "parts", "steps"} < set(told)
    assert "with its noise of 0.1, which what is above is measured without:" in str(found).splitlines()
    assert "relative error" in found.verdict.evidence.split("; noise of 0.1 moves its outputs by ")[1]
    write_page(found, tmp_path / "page.html", "noisy")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'id="with-its-noise"' in page
    assert ">nan" not in page


def test_a_silent_network_has_no_spread_that_noise_could_be_compared_with():
    silent = {"recurrent": np.zeros((3, 3)), "input_weights": np.zeros((3, 1)), "decoders": np.ones((3, 1))}
    found = of(Analysis, analyze(silent, activation="linear", noise=0.1))
    assert found.verdict.kind == "forgets"
    assert math.isnan(there(found.noisy).parts[0])
    assert "nan" not in str(found)
