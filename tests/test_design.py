import sys

import pytest
import torch

import rni
from rni import vectors
from rni.activation import Sigmoid
from rni.cli import main
from rni.designing.relu import nearest_nonnegative
from rni.task import bursts

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
    f = Sigmoid(40 + 20 * torch.rand(400, generator=generator), 0.05 + 0.1 * torch.rand(400, generator=generator))
    assert max(rni.design(rni.Integration([0.8, 0.75]), 400, f).error(500)) < 0.05


def test_the_same_seed_gives_the_same_bits_and_the_vectors_of_a_training():
    task = rni.Integration([0.9, 0.8])
    first, second, other = (rni.design(task, 100, seed=seed).network for seed in (3, 3, 4))
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert not torch.equal(first.recurrent.matrix(), other.recurrent.matrix())
    parts = {"neurons": 100, "precision": "float64"}
    trained = rni.Specification.parse({"seed": 3, "task": {"decays": task.decays}, "network": parts}).build()
    assert torch.equal(first.encoders, trained.encoders)
    assert torch.equal(first.decoders, trained.decoders)


def test_noise_on_the_weights_costs_about_what_it_costs_a_trained_network():
    """Both have about the least norm, and the cost of noise follows the norm."""
    task, n = {"decays": [0.95]}, 200
    specification = rni.Specification.parse({"task": task, "network": {"neurons": n}, "training": {"steps": 1000}})
    trained = rni.run(specification).network
    designed = rni.design(rni.Integration(0.95), n).network
    x = bursts(4, 200, 1, torch.Generator().manual_seed(0))
    assert _cost_of_noise(designed, x) < 1.3 * _cost_of_noise(trained, x)


@torch.no_grad()
def _cost_of_noise(net, x, draws=10):
    from rni.analysis.robustness import noisy_weights

    x = x.to(net.encoders)
    quiet = net.outputs(x)
    noisy = [noisy_weights(net, 0.01, torch.Generator().manual_seed(k)).outputs(x) for k in range(draws)]
    return sum(float((y - quiet).norm() / quiet.norm()) for y in noisy) / draws


def test_a_hundred_thousand_neurons_are_a_matter_of_a_second():
    design = rni.design(rni.Integration([0.995, 0.993]), 100_000)
    assert max(*design.output_residuals, *design.current_residuals) < 1e-12
    assert design.seconds < 10


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
    ("arguments", "words"),
    [
        ({"decoders": torch.rand(50, 1)}, "both signs"),
        ({"decoders": torch.zeros(50, 1)}, "no column 0"),
        ({"encoders": torch.rand(50, 2)}, r"shape \(50, 2\)"),
        ({"activation": "rectified_power"}, "errs by"),
        ({"activation": "tanh", "bounds": (1.0, 2.0)}, "bounds"),
        ({"activation": "foo"}, "activation: 'foo'"),
        ({"bounds": (1.0,)}, "allowed: none for 'relu'"),
        ({"neurons": 0}, "neurons: 0"),
    ],
)
def test_what_can_not_be_designed_is_refused_in_one_line(arguments, words):
    with pytest.raises(rni.InputError, match=words) as error:
        rni.design(rni.Integration(0.9), **{"neurons": 50, **arguments})
    assert "\n" not in str(error.value)
    assert "allowed" in str(error.value)


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["rni", "design", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        return code, *capsys.readouterr()

    return call


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
    ("arguments", "words"),
    [
        ((), "decays: missing"),
        (("--decays", "2"), "numbers between 0 and 1"),
        (("--decays", "x"), "--decays"),
        (("--decays", "0.9", "--scales", "1", "2"), "one for each decay"),
        (("--decays", "0.9", "--neurons", "2"), "more neurons"),
        (("--decays", "0.9", "--activation", "foo"), "'relu'"),
        (("--decays", "0.9", "--weights", "dense"), "--weights: no such option"),
        ((".9",), "--decays .9"),
    ],
)
def test_command_line_answers_a_wrong_value_in_one_line(command, arguments, words):
    code, _, err = command(*arguments)
    assert code == 2
    assert words in err
    assert err.count("\n") == 1
