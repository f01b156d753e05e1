import numpy as np
import pytest
import torch
from told import train_run

import rni
from rni import vectors
from rni.activations import RectifiedPower, Sigmoid, make
from rni.core.threads import threads
from rni.designs.relu import nearest_nonnegative
from rni.tasks.inputs import bursts

DECAYS = (0.995, 0.993, 0.99, 0.992, 0.994)


@pytest.mark.parametrize("activation", ["linear", "relu"])
@pytest.mark.parametrize("channels", [1, 2, 3, 5])
def test_linear_and_relu_designs_integrate_exactly_with_a_recurrent_matrix_of_rank_d(activation, channels):
    design = rni.design(rni.Integration(DECAYS[:channels], [1, -0.5, 2, 1, 1][:channels]), 300, activation)
    assert len(design.singular_values) == channels
    assert min(design.singular_values) > 0.1
    assert max(design.error(400)) < 1e-11
    assert max(*design.output_residuals, *design.current_residuals) < 1e-12


@pytest.mark.parametrize("scale", [0.2, 1.0, 5.0])
def test_one_channel_has_the_least_norm_that_theory_allows(scale):
    r"""2 gamma (s + 1/(4s)) from s = 1/2 on, the paper's bound 2 gamma below, for orthonormal vectors and n large."""
    e, d = vectors.orthonormal(4000, 1, torch.Generator().manual_seed(0))
    for activation, factor in (("linear", 1), ("relu", 2)):
        norm = rni.design(rni.Integration(0.9, scale), 4000, activation, encoders=e, decoders=d).norm
        assert norm == pytest.approx(factor * 0.9 * (scale + 1 / (4 * scale) if scale > 0.5 else 1), rel=0.02)


@pytest.mark.parametrize("kind", ["same", "overlap", "disjoint", "decoders"])
def test_given_vectors_on_supports_are_kept_and_served_exactly(kind, generator):
    e, d = vectors.on_supports(300, 2, generator, kind=kind)
    design = rni.design(rni.Integration([0.99, 0.98]), 300, encoders=e, decoders=d)
    torch.testing.assert_close(design.network.encoders.data, e, rtol=0, atol=0)
    torch.testing.assert_close(design.network.decoders.data, d, rtol=0, atol=0)
    assert max(design.error(200)) < 1e-11


@pytest.mark.parametrize("activation", ["linear", "relu"])
@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_encoders_equal_to_the_decoders_do_not_blow_up_the_weights(activation, scale, generator):
    e = vectors.independent(300, 2, generator).encoders
    design = rni.design(rni.Integration([0.99, 0.98], [scale, scale]), 300, activation, encoders=e, decoders=e)
    assert design.norm < 10
    assert max(design.error(200)) < 1e-11


@pytest.mark.parametrize(("channels", "allowed"), [(1, 0.03), (2, 0.06)])
def test_sigmoid_designs_integrate_bursts_approximately(channels, allowed):
    design = rni.design(rni.Integration((0.8, 0.75)[:channels]), 400, Sigmoid(50.0, 0.1))
    assert max(design.error(500)) < allowed
    assert design.norm < 10


def test_a_design_is_validated_on_points_it_has_not_seen():
    """The reported residual of the outputs is what an independent grid over the whole box finds."""
    design = rni.design(rni.Integration([0.8, 0.75]), 400, "sigmoid")
    net = design.network
    first, second = torch.linspace(-5, 5, 41).double(), torch.linspace(-4, 4, 41).double()
    z = torch.cartesian_prod(first, second)
    wanted = torch.tensor([0.8, 0.75]).double() * z
    driven = net.recurrent(net.encoders.T)
    output = net.f((z + torch.tensor(design.offset)) @ driven) @ net.decoders
    found = ((output - wanted).norm(dim=0) / wanted.norm(dim=0)).detach()
    assert found.tolist() == pytest.approx(design.output_residuals, rel=0.3)


def test_activity_at_rest_is_answered_by_an_offset_of_the_integrals():
    """f(0) = 1/2 puts D'f(0) into the outputs: an error at first, which is gone once the network has come to rest."""
    design = rni.design(rni.Integration(0.8), 400, Sigmoid(5.0, 0.0))
    net = design.network
    at_rest = float(net.decoders.detach().sum()) / 2
    assert design.offset[0] == pytest.approx(-at_rest / 0.8)
    y = net.outputs(torch.zeros(1, 60, 1).double()).detach()[0, :, 0]
    assert float(y[0]) == pytest.approx(at_rest)
    assert abs(float(y[-1])) < 0.2 * abs(at_rest)


def test_neurons_may_differ_in_their_sigmoids(generator):
    f = make(
        "sigmoid",
        slope=40 + 20 * torch.rand(400, generator=generator),
        threshold=0.05 + 0.1 * torch.rand(400, generator=generator),
    )
    assert max(rni.design(rni.Integration([0.8, 0.75]), 400, f).error(500)) < 0.05


def test_the_same_seed_gives_the_same_bits_and_the_vectors_of_a_training():
    task = rni.Integration([0.9, 0.8])
    first, second, other = (rni.design(task, 100, seed=seed).network for seed in (3, 3, 4))
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert not torch.equal(first.recurrent.matrix(), other.recurrent.matrix())
    parts = {"neurons": 100, "precision": "float64"}
    trained = train_run({"seed": 3, "task": {"decays": task.decays}, "network": parts}).build()
    assert torch.equal(first.encoders, trained.encoders)
    assert torch.equal(first.decoders, trained.decoders)


def test_noise_on_the_weights_costs_about_what_it_costs_a_trained_network():
    """Both have about the least norm, and the cost of noise follows the norm."""
    task, n = {"decays": [0.95]}, 200
    specification = rni.parse_run({"task": task, "network": {"neurons": n}, "training": {"steps": 1000}})
    trained = rni.run(specification).network
    designed = rni.design(rni.Integration(0.95), n).network
    x = bursts(4, 200, 1, torch.Generator().manual_seed(0))
    assert _cost_of_noise(designed, x) < 1.3 * _cost_of_noise(trained, x)


@torch.no_grad()
def _cost_of_noise(net, x, draws=10):
    from rni.analysis.perturbations import noisy_weights

    x = x.to(net.encoders)
    quiet = net.outputs(x)
    noisy = [noisy_weights(net, 0.01, torch.Generator().manual_seed(k)).outputs(x) for k in range(draws)]
    return sum(float((y - quiet).norm() / quiet.norm()) for y in noisy) / draws


def test_a_hundred_thousand_neurons_are_designed_like_a_hundred():
    design = rni.design(rni.Integration([0.995, 0.993]), 100_000)
    assert max(*design.output_residuals, *design.current_residuals) < 1e-12


def simulated_error(design, duration=300):
    """Relative error over white noise from nothing but the matrices, by channel."""
    net = design.network
    tensors = (*net.recurrent.factors(), net.encoders, net.decoders)
    left, right, e, d = (tensor.detach().numpy() for tensor in tensors)
    f = {"linear": lambda nu: nu, "relu": lambda nu: np.maximum(nu, 0)}[net.f.name]
    x = np.random.default_rng(0).standard_normal((duration, net.channels))
    wanted = net.task.targets(torch.tensor(x)).numpy()
    h, outputs = np.zeros(net.neurons), []
    for now in x:
        h = f(left @ (right.T @ (h + e @ now)))
        outputs.append(d.T @ h)
    return np.sqrt(((outputs - wanted) ** 2).sum(0) / (wanted**2).sum(0)).max()


@pytest.mark.parametrize("activation", ["linear", "relu", "tanh", "softplus"])
@pytest.mark.parametrize("dependent", ["encoders", "decoders"])
def test_linearly_dependent_vectors_are_refused_for_every_activation(activation, dependent, generator):
    given = vectors.independent(100, 3, generator)._asdict()
    given[dependent][:, 2] = given[dependent][:, 0] - given[dependent][:, 1]
    with pytest.raises(rni.InputError) as error:
        rni.design(rni.Integration([0.8, 0.7, 0.6]), 100, activation, **given)
    assert error.value.field == dependent


def test_a_linear_design_needs_two_neurons_for_each_channel(generator):
    task = rni.Integration(DECAYS[:3])
    assert simulated_error(rni.design(task, 6, "linear")) < 1e-10
    for neurons in (3, 4, 5):
        with pytest.raises(rni.InputError) as error:
            rni.design(task, neurons, "linear")
        assert (error.value.field, error.value.value) == ("neurons", neurons)
        assert error.value.allowed.startswith("at least 6")


def test_a_linear_design_needs_fewer_neurons_where_the_encoders_suit_the_decoders(generator):
    """With D'E = S already, W = E Gamma E^-1 does, as many neurons as channels; each such direction saves one."""
    decoders = vectors.independent(3, 3, generator).decoders
    scales = torch.tensor([1.0, -2.0, 0.5]).double()
    encoders = torch.linalg.inv(decoders.T) * scales
    task = rni.Integration(DECAYS[:3], scales.tolist())
    assert simulated_error(rni.design(task, 3, "linear", encoders=encoders, decoders=decoders)) < 1e-10


@pytest.mark.parametrize("activation", ["linear", "relu"])
def test_encoders_may_lie_in_the_span_of_the_decoders(activation, generator):
    decoders = vectors.independent(200, 3, generator).decoders
    encoders = decoders @ torch.randn(3, 3, generator=generator).double()
    design = rni.design(rni.Integration([0.9, 0.8, 0.7]), 200, activation, encoders=encoders, decoders=decoders)
    assert simulated_error(design) < 1e-9


@pytest.mark.parametrize(
    ("decoder", "encoder", "scale", "possible"),
    [
        ([1, -2], [3, 1], 1, True),  # n = 2 and d.e = s
        ([1, -2], [3, 1], 2, False),
        ([1, 2], [3, 1], 5, False),  # one sign only
        ([1, -2, 0], [3, 1, 0], 2, True),  # the third neuron is neither read nor fed, and yet of use
        ([1, 2, -1e-3], [1, 2, -1e-3], 7, True),
        ([0, 1, -1], [1, 0, 0], -3, True),
        ([1, 2, 0], [1, 1, 1], 1, False),
        ([1, 2, 3, -1], [0, 0, 0, 1], 1, True),
    ],
)
def test_one_relu_channel_is_possible_exactly_when_theory_says_so(decoder, encoder, scale, possible):
    r"""Both signs in d, and n > 2 or d.e = s: with two neurons L, hence M = d / s, are unique and M'e = 1 is luck."""
    e, d = (torch.tensor(vector).double()[:, None] for vector in (encoder, decoder))
    options = {"neurons": len(decoder), "encoders": e, "decoders": d}
    if possible:
        assert simulated_error(rni.design(rni.Integration(0.9, scale), **options)) < 1e-9
    else:
        with pytest.raises(rni.InputError) as error:
            rni.design(rni.Integration(0.9, scale), **options)
        assert error.value.field in ("decoders", "neurons")


@pytest.mark.parametrize("activation", ["linear", "relu"])
@pytest.mark.parametrize(("scale", "encoder", "decoder"), [(1e6, 1, 1), (1e-6, 1, 1), (1, 1e6, 1), (1, 1, 1e-6)])
def test_scales_and_vectors_may_have_any_size(activation, scale, encoder, decoder, generator):
    e, d = vectors.independent(100, 2, generator, encoder_norm=encoder, decoder_norm=decoder)
    design = rni.design(rni.Integration([0.9, 0.8], [scale, -scale]), 100, activation, encoders=e, decoders=d)
    assert simulated_error(design) < 1e-6


@pytest.mark.parametrize("encoder", [1e-6, 1e6])
def test_other_activations_take_vectors_of_any_size_too(encoder, generator):
    e, d = vectors.independent(200, 1, generator, encoder_norm=encoder, decoder_norm=1e6)
    design = rni.design(rni.Integration(0.7, 1e6), 200, "tanh", encoders=e, decoders=d)
    assert max(design.error(300)) < 0.1


def test_a_bounded_activation_says_how_large_its_integrals_can_be():
    """At most the sum of all |d_j| / 2 for sigmoids, sqrt(n / 2 pi) for Gaussian decoders of length 1."""
    for activation, factor in (("sigmoid", 1), ("tanh", 2)):
        with pytest.raises(rni.InputError) as error:
            rni.design(rni.Integration(0.9, 1e6), 400, activation)
        assert (error.value.field, error.value.value) == ("bounds", pytest.approx(0.9e6 * 10))
        allowed = float(error.value.allowed.removeprefix("well below ").split(",")[0])
        assert allowed == pytest.approx(factor * (400 / (2 * np.pi)) ** 0.5, rel=0.1)
    assert max(rni.design(rni.Integration(0.95), 300, "tanh", bounds=[4.0]).error(1000)) < 0.1


def test_what_does_not_integrate_is_not_returned():
    """Fits of max(nu, 0)^p to a line look fair, and feed on themselves."""
    for exponent in (1.2, 1.5, 2.0):
        with pytest.raises(rni.InputError) as error:
            rni.design(rni.Integration(0.8), 200, RectifiedPower(exponent))
        assert error.value.field == "design"
        assert error.value.value is not None
        assert error.value.value > 0.1


def test_a_perfect_integrator_has_bounds_of_its_own():
    """Decay 1: exact where f is linear or ReLU; nothing without bounds otherwise."""
    assert simulated_error(rni.design(rni.Integration(1.0), 50)) < 1e-10
    with pytest.raises(rni.InputError) as error:
        rni.design(rni.Integration(1.0), 100, "softplus")
    assert error.value.field == "bounds"


def test_any_number_of_threads_gives_the_same_design():
    for activation in ("relu", "sigmoid"):
        made = []
        for number in (1, 2):
            with threads(number):
                made.append(rni.design(rni.Integration([0.8, 0.75]), 300, activation).network)
                assert torch.get_num_threads() == number
        first, second = ([*net.recurrent.parameters()] for net in made)
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_vectors_may_be_numpy_arrays_of_any_precision():
    e, d = np.random.default_rng(0).standard_normal((2, 60, 2)).astype(np.float32)
    net = rni.design(rni.Integration([0.9, 0.8]), 60, encoders=e, decoders=torch.tensor(d)).network
    assert np.array_equal(net.encoders.detach().numpy(), e)
    assert net.dtype == torch.float64


def test_nearest_nonnegative_is_a_projection_onto_the_constraints(generator):
    """Checked by the optimality conditions: what is positive moved along the constraints only."""
    start, a = (torch.randn(shape, generator=generator).double() for shape in ((50,), (50, 6)))
    b = a.T @ torch.rand(50, generator=generator).double()
    rho = nearest_nonnegative(start, a, b)
    assert rho is not None
    torch.testing.assert_close(a.T @ rho, b)
    assert rho.min() == 0
    active = rho > 0
    multipliers = torch.linalg.lstsq(a[active], (rho - start)[active, None], driver="gelsd").solution[:, 0]
    torch.testing.assert_close((start + a @ multipliers).clamp(min=0), rho)
    assert nearest_nonnegative(start, a.abs(), -torch.ones(6).double()) is None


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("decoders", {"decoders": torch.rand(50, 1)}),
        ("bounds", {"decoders": torch.rand(50, 1), "activation": "sigmoid"}),
        ("decoders", {"decoders": [["a"]]}),
        ("decoders", {"decoders": torch.zeros(50, 1)}),
        ("encoders", {"encoders": np.full((50, 1), np.nan)}),
        ("encoders", {"encoders": torch.rand(50, 2)}),
        ("activation", {"activation": torch.ones_like}),
        ("activation", {"activation": lambda nu: 0 * nu}),
        ("activation", {"activation": torch.sqrt}),
        ("activation", {"activation": lambda nu: nu.sum()}),
        ("activation", {"activation": lambda nu: nu[..., :1]}),
        ("activation", {"activation": lambda nu: nu.float()}),
        ("activation", {"activation": "foo"}),
        ("sigmoid.slope", {"activation": make("sigmoid", slope=torch.ones(7))}),
        ("design", {"activation": torch.sign, "bounds": (1.0,)}),
        ("design", {"activation": "rectified_power"}),
        ("neurons", {"neurons": 1}),
        ("neurons", {"neurons": 2.0}),
        ("neurons", {"neurons": 0}),
        ("seed", {"seed": -1}),
        ("bounds", {"activation": "tanh", "bounds": 3.0}),
        ("bounds", {"activation": "tanh", "bounds": (float("nan"),)}),
        ("bounds", {"activation": "tanh", "bounds": (float("inf"),)}),
        ("bounds", {"activation": "tanh", "bounds": ("a",)}),
        ("bounds", {"activation": "tanh", "bounds": (-1.0,)}),
        ("bounds", {"activation": "tanh", "bounds": (1.0, 2.0)}),
        ("bounds", {"bounds": (1.0,)}),
    ],
)
def test_what_can_not_be_designed_is_refused_in_one_line(field, arguments):
    with pytest.raises(rni.InputError) as error:
        rni.design(rni.Integration(0.9), **{"neurons": 50, **arguments})
    assert str(error.value).startswith(f"{field}: ")
    assert "\n" not in str(error.value)


def test_a_design_simulates_its_network_once(monkeypatch):
    """The test of 2000 steps, whose result is printed, and nothing else."""
    simulated, outputs = [], rni.Network.outputs
    monkeypatch.setattr(
        rni.Network, "outputs", lambda net, x, *rest: simulated.append(x.shape) or outputs(net, x, *rest)
    )
    design = rni.design(rni.Integration([0.9, 0.8]), 60)
    assert str(design)
    assert [shape[1] for shape in simulated] == [2000]
    assert design.errors == design.error()


@pytest.fixture
def command(rni_command):
    return lambda *arguments: rni_command("design", *arguments)


@pytest.mark.parametrize(
    "activation",
    [
        "linear",
        "relu",
        "tanh",
        "sigmoid",
        "softplus",
        "{name = 'sigmoid', slope = {mean = 50.0, deviation = 5.0}}",
    ],
)
def test_a_designed_file_is_simulated_analysed_and_exported(rni_command, activation):
    options = ("--decays", ".7", "--neurons", 100, "--activation", activation)
    assert rni_command("design", *options, "--out", "n.safetensors")[0] == 0
    x = bursts(2, 60, 1, torch.Generator().manual_seed(0)).numpy()
    np.save("x.npy", x)
    code, _, err = rni_command("simulate", "n.safetensors", "--inputs", "x.npy", "--out", "y.npy")
    assert (code, err) == (0, "")
    y, wanted = np.load("y.npy"), rni.Integration(0.7).targets(torch.tensor(x)).numpy()
    assert np.linalg.norm(y - wanted) < 0.1 * np.linalg.norm(wanted)
    assert rni_command("analyze", "n.safetensors", "--json")[0] == 0
    assert rni_command("export", "n.safetensors", "--to", "arrays")[0] == 0


def test_simulate_warns_beyond_the_bounds_of_a_design(rni_command):
    options = ("--decays", "1", "--bounds", "2", "--neurons", 100, "--activation", "softplus")
    assert rni_command("design", *options, "--out", "n.safetensors")[0] == 0
    np.save("x.npy", np.ones((5, 1)))
    code, _, err = rni_command("simulate", "n.safetensors", "--inputs", "x.npy", "--out", "y.npy")
    assert code == 0
    assert "channel 1 reaches |z| = 5" in err


@pytest.mark.parametrize(
    "specification",
    [
        None,
        {"design": {"seed": 0, "task": {"decays": [0.9]}, "network": {"neurons": 50, "weights": "lowrank"}}},
        {"seed": 0, "task": {"decays": [0.9]}, "network": {"neurons": 50}, "training": {"steps": 0}},
        {"made by": "somebody"},
    ],
)
def test_simulate_reads_files_whatever_their_record_of_how_they_were_made(rni_command, specification):
    net = rni.design(rni.Integration(0.9), 50).network
    rni.save(net, "n.safetensors", specification)
    np.save("x.npy", np.ones((5, 1)))
    assert rni_command("simulate", "n.safetensors", "--inputs", "x.npy", "--out", "y.npy")[0] == 0
    assert np.load("y.npy")[-1, 0] == pytest.approx(sum(0.9**k for k in range(1, 6)))


def test_command_line_writes_the_network_that_the_library_designs(command):
    code, out, _ = command(
        "--decays", ".9", ".8", "--scales", "-1", "1", "--neurons", 100, "--seed", 3, "--out", "n.st"
    )
    assert code == 0
    assert "certified below" in out
    written, made = rni.load("n.st"), rni.design(rni.Integration([0.9, 0.8], [-1, 1]), 100, seed=3).network
    assert torch.equal(written.recurrent.matrix(), made.recurrent.matrix())
    assert command("--decays", "0.8", "--neurons", 200, "--activation", "sigmoid")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), "decays"),
        (("--decays", "2"), "decays"),
        (("--decays", "x"), "--decays"),
        (("--decays", "0.9", "--scales", "1", "2"), "scales"),
        (("--decays", "0.9", "--neurons", "2"), "neurons"),
        (("--decays", ".9", ".8", ".7", "--neurons", "2"), "neurons"),
        (("--decays", "0.995", "--activation", "sigmoid"), "bounds"),
        (("--decays", "0.9", "--activation", "sigmoid", "--bounds", "1", "2"), "bounds"),
        (("--decays", "1", "--activation", "sigmoid"), "bounds"),
        (("--decays", "0.9", "--activation", "foo"), "activation"),
        (("--decays", "0.9", "--weights", "dense"), "--weights"),
        ((".9",), "--decays .9"),
    ],
)
def test_command_line_answers_a_wrong_value_in_one_line(command, arguments, named):
    code, _, err = command(*arguments)
    assert code == 2
    assert named in err
    assert err.count("\n") == 1
