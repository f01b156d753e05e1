"""Files as other people's code makes them: what is read is what that code computes, and its decays are found."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.io
import torch
from told import of, refused, there
from torch import Tensor, nn

from rni import Analysis, InputError, Network, VanillaRNN, analyze
from rni.activations import make
from rni.analysis.decays import fit_integrals
from rni.files import foreign
from rni.files.export import to_arrays
from rni.networks.vanilla import Form
from rni.weights import Dense

N, LEAK, DECAYS = 30, 0.2, (0.98, 0.95)
WITHIN = [1 - (1 - decay) / LEAK for decay in DECAYS]  # eigenvalues of W with which the whole step has these decays
REST = 60.0  # activity about which no ReLU is ever silent
SMALL = 1e-3  # inputs to a tanh, for which it is a line
RNG = np.random.default_rng(0)
X = torch.from_numpy(RNG.normal(size=(12, 200, 2)))


def vectors():
    """L, R (N, 2) with R.T L = 1, orthogonal to (1, ..., 1), so that a bias of all neurons alike is not integrated."""
    left, right = RNG.normal(size=(2, N, 2))
    left, right = left - left.mean(0), right - right.mean(0)
    return left, right @ np.linalg.inv(left.T @ right)


L, R = vectors()
W = L @ np.diag(WITHIN) @ R.T
B = REST * np.ones(N)


def excitatory_inhibitory():
    """|W|, the signs of its columns, and the mode of W that has the first decay, which inputs are given to."""
    signs = np.where(np.arange(N) < 24, 1.0, -1.0)
    w = np.abs(RNG.normal(size=(N, N))) * (1 - np.eye(N))
    values, modes = np.linalg.eig(w * signs)
    k = np.argmax(np.real(values))
    return w * WITHIN[0] / np.real(values[k]), signs, np.abs(np.real(modes[:, [k, k]])) * [1, 2]


def simulated(step, state, read):
    """Outputs to X of the code that a file comes from, step by step; states are rows."""
    outputs = []
    for x in X.unbind(1):
        state = step(state, x)
        outputs.append(read(state))
    return torch.stack(outputs, 1)


def tensors(**arrays):
    return {name: torch.tensor(np.asarray(values, float)) for name, values in arrays.items()}


def psychrnn(path, w=W, u=L, out=R.T, signs=None):
    """PsychRNN's save: weights as they are used, masks and Dale matrices, and a dale_ratio that is pickled if None."""
    dale = signs is not None
    signs = np.ones(N) if signs is None else signs
    saved = {
        "init_state": B[None],
        "W_in": u,
        "W_rec": w,
        "W_out": out,
        "b_rec": B - w @ B,
        "b_out": np.array([0.5, 1]),
        "Dale_rec": np.diag(signs),
        "Dale_out": np.diag(np.maximum(signs, 0)),
        "input_connectivity": np.ones((N, 2)),
        "rec_connectivity": np.ones((N, N)),
        "output_connectivity": np.ones((2, N)),
    }
    np.savez(path, **saved, dale_ratio=np.array(0.8 if dale else None))
    t = tensors(**saved)

    def step(v, x):
        return (1 - LEAK) * v + LEAK * (torch.relu(v) @ t["W_rec"].T + x @ t["W_in"].T + t["b_rec"])

    return simulated(step, t["init_state"].repeat(len(X), 1), lambda v: torch.relu(v) @ t["W_out"].T + t["b_out"])


def psychrnn_dale(path):
    w, signs, along = excitatory_inhibitory()
    return psychrnn(path, w * signs, along, np.abs(RNG.normal(size=(2, N))) * (signs > 0), signs)


def low_rank(path):
    """The state dict of a low-rank RNN: factors, inputs and outputs with their scales, no thresholds, a start."""
    start = 0.01 * B / REST
    t = tensors(m=N * L * WITHIN, n=R, wi=L.T, si=[SMALL, SMALL], wo=N * R / SMALL, so=[1, 0.5], b=0 * B, h0=start)
    torch.save(t, path)

    def step(h, x):
        fed = torch.tanh(h + t["b"]) @ t["n"] @ t["m"].T / N + x @ (t["wi"] * t["si"][:, None])
        return h + LEAK * (-h + fed)

    return simulated(step, t["h0"].repeat(len(X), 1), lambda h: torch.tanh(h) @ (t["wo"] * t["so"]) / N)


def full_rank(path):
    t = tensors(wrec=W, wi=SMALL * L.T, si=[1, 1], wo=R / SMALL, so=[1, 2], b=0 * B, h0=0 * B)
    torch.save(t, path)

    def step(h, x):
        return h + LEAK * (-h + torch.tanh(h) @ t["wrec"].T + x @ t["wi"])

    return simulated(step, t["h0"].repeat(len(X), 1), lambda h: torch.tanh(h) @ (t["wo"] * t["so"]))


class Cell(nn.Module):
    """A leaky RNN as in tutorials, with layers of any names."""

    input2h: nn.Linear
    h2h: nn.Linear

    def __init__(self, inputs, recurrent, w=W, u=L, bias=0.0):
        super().__init__()
        self.alpha = LEAK
        for name, matrix in ((inputs, u), (recurrent, w)):
            layer = nn.Linear(matrix.shape[1], N, bias=True, dtype=torch.float64)
            layer.load_state_dict(tensors(weight=matrix, bias=bias * B / REST / 2))  # half of the bias each
            self.add_module(name, layer)


class Model(nn.Module):
    fc: nn.Linear

    def __init__(self, cell, decoders=R, readout="fc"):
        super().__init__()
        self.rnn = cell
        self.add_module(readout, nn.Linear(*decoders.shape, dtype=torch.float64))
        self.get_submodule(readout).load_state_dict(tensors(weight=decoders.T, bias=[0.5, 1]))


def tutorial(path):
    """input2h, h2h, fc: h is the state, and a ReLU."""
    model = Model(Cell("input2h", "h2h", bias=REST))
    torch.save(model.state_dict(), path)
    cell = model.rnn

    def step(h, x):
        return h * (1 - LEAK) + LEAK * torch.relu(cell.input2h(x) + cell.h2h(h))

    with torch.no_grad():
        return simulated(step, torch.zeros(len(X), N, dtype=torch.float64), model.fc)


def tutorial_dale(path):
    """The E-I network of the same tutorials: fc reads E neurons alone; signs and the diagonal are not in the file."""
    w, signs, along = excitatory_inhibitory()
    model = Model(Cell("input2h", "h2h", w - np.eye(N), along, REST), np.abs(RNG.normal(size=(24, 2))))
    torch.save(model.state_dict(), path)
    used = torch.from_numpy(w * signs)
    cell = model.rnn

    def step(v, x):
        return v * (1 - LEAK) + LEAK * (cell.input2h(x) + torch.relu(v) @ used.T + cell.h2h.bias)

    with torch.no_grad():
        start = torch.zeros(len(X), N, dtype=torch.float64)
        return simulated(step, start, lambda v: model.fc(torch.relu(v)[:, :24]))


def layers(path):
    """W_in, W, W_out as layers of one module, with tanh."""
    cell = Cell("W_in", "W", u=SMALL * L)
    cell.W_out = nn.Linear(N, 2, bias=False, dtype=torch.float64)
    cell.W_out.load_state_dict(tensors(weight=R.T / SMALL))
    torch.save({"epoch": 9, "model": cell.state_dict()}, path)

    fed, recurrent = cell.get_submodule("W_in"), cell.get_submodule("W")

    def step(h, x):
        return h * (1 - LEAK) + LEAK * torch.tanh(fed(x) + recurrent(h))

    with torch.no_grad():
        return simulated(step, torch.zeros(len(X), N, dtype=torch.float64), cell.W_out)


def rows(path):
    """Matrices for states as rows, h @ W_rec, with the leak beside them."""
    t: dict[str, Any] = tensors(W_rec=W.T, W_in=SMALL * L.T, b_rec=0 * B, W_out=R / SMALL, b_out=[0.5, 1], alpha=LEAK)
    np.savez(path, **t)

    def step(h, x):
        return (1 - LEAK) * h + LEAK * torch.tanh(h @ t["W_rec"] + x @ t["W_in"] + t["b_rec"])

    return simulated(step, torch.zeros(len(X), N, dtype=torch.float64), lambda h: h @ t["W_out"] + t["b_out"])


def matlab(path):
    """A structure in a .mat file: vectors are columns, and the outputs are read from the currents."""
    saved = {"J": W, "B": SMALL * L, "Z": R.T / SMALL, "b": 0.01 * B[:, None] / REST, "x0": 0 * B[:, None]}
    scipy.io.savemat(path, {"net": saved, "comment": "trained"})
    t = tensors(**saved)

    def step(v, x):
        return v + LEAK * (-v + torch.tanh(v) @ t["J"].T + x @ t["B"].T + t["b"].T)

    return simulated(step, t["x0"].T.repeat(len(X), 1), lambda v: v @ t["Z"].T)


def keras(path):
    """model.get_weights() of a SimpleRNN and a Dense layer: matrices are (from, to)."""
    w = L @ np.diag(DECAYS) @ R.T
    weights = [SMALL * L.T, w.T, 0.0 * B, R / SMALL, np.array([0.5, 1])]
    np.savez(path, *weights)
    u, w, b, d, a = map(torch.from_numpy, weights)
    return simulated(lambda h, x: torch.tanh(x @ u + h @ w + b), torch.zeros(len(X), N).double(), lambda h: h @ d + a)


MAP = {"recurrent": "net.J", "input_weights": "net.B", "decoders": "net.Z.T", "bias": "net.b", "initial": "net.x0"}
CODES = {
    "PsychRNN": (psychrnn, "w.npz", {"dt": 10, "tau": 50}),
    "PsychRNN, Dale": (psychrnn_dale, "w.npz", {"leak": LEAK}),
    "low-rank": (low_rank, "w.pt", {}),
    "full-rank": (full_rank, "w.pt", {"leak": LEAK}),
    "tutorial": (tutorial, "w.pt", {"leak": LEAK}),
    "tutorial, Dale": (tutorial_dale, "w.pt", {"leak": LEAK}),
    "layers": (layers, "w.pt", {"dt": 0.1, "tau": 0.5}),
    "rows": (rows, "w.npz", {}),
    "MATLAB": (
        matlab,
        "w.mat",
        {"leak": LEAK, "form": "current", "reads": "state", "activation": "tanh", "names": MAP},
    ),
    "Keras": (keras, "w.npz", {}),
}


OPTIONS = {"activation": "tanh", "leak": LEAK}


@pytest.mark.parametrize("code", CODES)
@torch.no_grad()
def test_what_is_read_computes_what_that_code_computes_and_has_its_decays(code, tmp_path):
    make_file, name, options = CODES[code]
    expected = make_file(tmp_path / name)
    net = foreign.read(tmp_path / name, **options)
    assert isinstance(net, VanillaRNN)
    torch.testing.assert_close(net.outputs(X), expected, rtol=1e-9, atol=1e-9)
    expected = expected - net.outputs(0 * X[:1])
    decays = fit_integrals(expected / expected.std((0, 1)), X).decays
    assert decays.tolist() == pytest.approx([DECAYS[0]] * 2 if "Dale" in code else DECAYS, rel=1e-3)


@torch.no_grad()
def test_thresholds_of_the_recurrence_alone_are_biases_of_a_shifted_state():
    """Low-rank RNNs have f(h + b) in the recurrence and f(h) in the readout."""
    m, n, wi, wo, b, h0 = (torch.from_numpy(RNG.normal(size=s)) for s in ((N, 1), (N, 1), (2, N), (N, 2), N, N))
    net = foreign.interpret({"m": m, "n": n, "wi": wi, "wo": wo, "b": b, "h0": h0})
    assert isinstance(net, VanillaRNN)

    def step(h, x):
        return h + LEAK * (-h + torch.tanh(h + b) @ n @ m.T / N + x @ wi)

    expected = simulated(step, h0.repeat(len(X), 1), lambda h: torch.tanh(h) @ wo / N)
    torch.testing.assert_close(net.outputs(X), expected)
    assert net.recurrent.factors() is not None
    assert "b counts in the first step too, in which such code leaves it out" in net.notes


def network(form: Form = "rate", leak: float | Tensor = LEAK, **more):
    bias, decoders = (torch.from_numpy(values) for values in (RNG.normal(size=N), R))
    return VanillaRNN(
        Dense(torch.from_numpy(W)), torch.from_numpy(L), make("tanh"), bias, decoders, leak=leak, form=form, **more
    )


@pytest.mark.parametrize("form", ["rate", "current"])
def test_a_step_is_that_of_its_form_and_its_jacobian_the_derivative(form):
    leak = torch.from_numpy(RNG.uniform(0.1, 1, size=N))
    net = network(form, leak)
    state, x = torch.from_numpy(RNG.normal(size=(3, N))), X[:3, 0]
    w, u, b = net.recurrent.matrix(), net.input_weights, net.bias
    if form == "rate":
        expected = (1 - leak) * state + leak * torch.tanh(state @ w.T + x @ u.T + b)
    else:
        expected = (1 - leak) * state + leak * (torch.tanh(state) @ w.T + x @ u.T + b)
    torch.testing.assert_close(net.step(state, x), expected)
    steps = [lambda s, x=x: net.step(s[None], x[None])[0] for x in x]
    slopes = [torch.autograd.functional.jacobian(step, s) for step, s in zip(steps, state, strict=True)]
    torch.testing.assert_close(net.jacobian(state, x), torch.stack(slopes))
    torch.testing.assert_close(net.run(X)[:, :1], net.step(net.start(len(X)), X[:, 0])[:, None])


@torch.no_grad()
def test_without_leak_both_forms_are_the_same_network():
    rate, current = network("rate", 1.0), network("current", 1.0)
    current = replace(current, bias=rate.bias)
    for (nu, h), (other_nu, other_h) in zip(rate.steps(X), current.steps(X), strict=True):
        torch.testing.assert_close(nu, other_nu)
        torch.testing.assert_close(h, other_h)


def test_a_module_says_its_leak_itself():
    model = Model(Cell("input2h", "h2h", bias=REST))
    net = foreign.interpret(model)
    assert isinstance(net, VanillaRNN)
    assert (net.leak, net.form, repr(net.f)) == (LEAK, "rate", "ReLU()")
    with pytest.raises(InputError, match="leak: given, and in the file; allowed: once"):
        foreign.interpret(model, leak=0.5)
    of_rank_one = nn.ParameterDict(tensors(m=np.ones((N, 1)), n=np.ones((N, 1)), wi=L.T, wo=R))
    vars(of_rank_one)["alpha"] = 0.3
    net = foreign.interpret(of_rank_one)
    assert isinstance(net, VanillaRNN)
    assert net.leak == 0.3


def test_a_cell_in_a_leaky_loop_says_its_leak_too_and_a_layer_has_none():
    for layer, leak in ((nn.RNNCell(2, N), LEAK), (nn.RNN(2, N), 1.0)):
        model = nn.Sequential(layer)
        vars(model)["alpha"] = LEAK
        net = foreign.interpret(model)
        assert isinstance(net, VanillaRNN)
        assert net.leak == leak
        assert any("leak 0.2, its attribute alpha" in note for note in net.notes) == (leak == LEAK)


def test_a_list_of_arrays_is_that_of_keras():
    net = foreign.interpret([np.ones((2, 5)), np.eye(5), np.arange(5.0)], "relu")
    assert isinstance(net, VanillaRNN)
    assert (net.channels, net.decoders, net.notes) == (2, None, ("read as the weights of Keras's SimpleRNN",))


def test_decays_are_found_under_process_noise_and_in_the_unit_of_time():
    """Noise on the state is integrated too, here up to three times as much as inputs are; it changes no decay."""
    arrays = {"recurrent": W, "input_weights": L, "decoders": R, "activation": "linear"}
    analysis = of(Analysis, analyze(arrays, leak=LEAK, form="current", noise=0.05, dt=10))
    noisy = there(analysis.noisy)
    assert analysis.fitted_decays == pytest.approx(DECAYS, rel=0.01)
    assert analysis.times == pytest.approx([-10 / np.log(decay) for decay in DECAYS], rel=0.1)
    assert noisy.decays == pytest.approx(DECAYS, rel=0.01)
    assert "time constants of them where a step is 10: " in str(analysis)
    quiet = of(Analysis, analyze(arrays, leak=LEAK, form="current"))
    assert quiet.linearity == pytest.approx(1)
    assert max(quiet.errors["bursts"][200]) < 1e-6 < 0.1 < max(noisy.errors["bursts"][200])


def test_a_leaky_network_taken_out_as_arrays_is_the_same_network(small, tmp_path):
    net = small("tanh")
    net = Network(net.task, net.encoders, net.decoders, net.recurrent, net.f, LEAK)
    to_arrays(net, tmp_path / "net.npz")
    back = foreign.read(tmp_path / "net.npz", dt=2.0)
    assert isinstance(back, VanillaRNN)
    assert (back.leak, back.form, back.dt, back.notes) == (LEAK, "rate", 2.0, ())
    torch.testing.assert_close(back.outputs(X), net.outputs(X))
    torch.testing.assert_close(VanillaRNN.of(net).outputs(X), net.outputs(X))


def test_a_network_that_starts_elsewhere_is_tested_from_rest():
    rest = torch.from_numpy(B + L @ [5.0, 3.0])
    bias = rest - torch.from_numpy(W) @ rest
    arrays = {"recurrent": W, "input_weights": L, "decoders": R, "bias": bias, "activation": "relu"}
    analysis = of(Analysis, analyze(arrays, leak=LEAK, form="rate"))
    assert analysis.verdict.kind == "integrates"
    assert analysis.fitted_decays == pytest.approx(DECAYS, rel=1e-3)
    assert analysis.offset == pytest.approx((5, 3), rel=1e-3)
    assert any(note.startswith("tested from where it rests") for note in analysis.notes)


SQUARE = {"W_rec": np.eye(3), "W_in": np.eye(3)}
LAYERS = {"h2h.weight": np.eye(4), "input2h.weight": np.ones((4, 1)), "fc.weight": np.ones((2, 4))}
PSYCH = {"W_rec": np.eye(4), "W_in": np.ones((4, 1)), "W_out": np.ones((1, 4)), "Dale_rec": np.eye(4)}
RANK = {"m": np.ones((4, 1)), "n": np.ones((4, 1)), "wi": np.ones((1, 4)), "wo": np.ones((4, 1))}


@pytest.mark.parametrize(
    ("given", "options", "field"),
    [
        (
            LAYERS,
            {},
            "leak",
        ),
        (PSYCH, {}, "leak"),
        (PSYCH, {"dt": 10}, "leak"),
        (PSYCH, {"dt": 10, "tau": 50, "leak": 0.2}, "leak, dt, tau"),
        (PSYCH, {"leak": 2.0}, "leak"),
        (PSYCH, {"leak": 0.2, "form": "voltage"}, "form"),
        (PSYCH, {"leak": 0.2, "noise": -1.0}, "noise"),
        (PSYCH, {"dt": -1.0, "tau": 2.0}, "dt"),
        (PSYCH | {"Dale_rec": np.eye(3)}, {"leak": 0.2}, "Dale_rec"),
        (PSYCH | {"rec_connectivity": np.eye(3)}, {"leak": 0.2}, "W_rec, rec_connectivity"),
        (RANK | {"n": np.ones((4, 2))}, {}, "m, n"),
        (RANK | {"wi": np.ones((4, 1))}, {}, "wi"),
        (RANK | {"si": np.ones(3)}, {}, "si"),
        (RANK | {"h0": np.ones(3)}, {}, "h0"),
        (SQUARE, {"leak": 0.1}, "W_in"),
        (LAYERS | {"a.h2h.weight": np.eye(4), "a.input2h.weight": np.eye(4)}, {}, "h2h.weight, a.h2h.weight"),
        (LAYERS | {"mask": np.eye(4)}, {"leak": 0.1}, "fc.weight, mask"),
        (LAYERS | {"input2h.weight": np.ones((5, 1))}, {}, "h2h.weight, input2h.weight"),
        (LAYERS | {"h2h.bias": np.ones(3)}, {"leak": 0.1}, "h2h.bias"),
        (
            {"arr_0": np.ones((2, 5)), "arr_1": np.ones((5, 15))},
            {},
            "arr_1",
        ),
        ({"arr_0": np.ones((2, 5))}, {}, "arrays"),
        ({"A": np.eye(3), "C": np.ones((3, 1))}, {}, "A, C"),
        ({"A": np.eye(3)}, {"names": {"recurrent": "J"}}, "map"),
        ({"A": np.eye(3)}, {"names": {"J": "A"}}, "map"),
        (
            {"A": np.eye(3)},
            {"names": {"recurrent": "A"}, **OPTIONS},
            "encoders, input_weights",
        ),
        (
            {"A": np.eye(3), "C": np.ones((1, 3))},
            {"names": {"recurrent": "A", "input_weights": "C"}, **OPTIONS},
            "input_weights",
        ),
        ({"activity": np.ones((2, 9, 3)), "inputs": np.ones((2, 9, 1))}, {"leak": 0.1}, "leak"),
    ],
)
def test_a_wrong_guess_is_refused_with_what_was_found_and_what_to_give(given, options, field):
    with pytest.raises(InputError) as caught:
        foreign.interpret(given, **options)
    assert refused(caught.value) == field
    assert str(caught.value).isprintable()


def test_what_a_file_has_is_listed_where_nothing_is_recognised(tmp_path):
    scipy.io.savemat(tmp_path / "net.mat", {"A": np.eye(3), "C": np.ones((3, 1))})
    with pytest.raises(InputError, match=r"those of ours by `names` \(--map\); in it: A 3x3, C 3x1"):
        foreign.read(tmp_path / "net.mat")


def test_files_that_would_have_to_be_run_or_need_more_are_refused(tmp_path):
    for name, allowed in (("net.h5", r"numpy.savez\(path, \*model.get_weights\(\)\)"), ("net.pkl", "an .npz")):
        (tmp_path / name).write_bytes(b"anything")
        with pytest.raises(InputError, match=f"allowed: (what )?{allowed}"):
            foreign.read(tmp_path / name)
    (tmp_path / "net.mat").write_bytes(b"MATLAB 7.3 MAT-file" + bytes(105) + b"\x00\x02IM" + bytes(400))
    with pytest.raises(InputError, match=r"of version 7\.3; allowed: MATLAB's version 5 or 7"):
        foreign.read(tmp_path / "net.mat")
    (tmp_path / "net.mat").write_bytes(b"nothing")
    with pytest.raises(InputError, match="a damaged MATLAB file"):
        foreign.read(tmp_path / "net.mat")
