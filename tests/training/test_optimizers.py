"""Every step against torch's own optimisers on automatic gradients, however the parameters lie in memory."""

import copy
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from rni import AveragedLoss, BatchLoss, InputError, Integration, Network, ProxyLoss, ReLUProxyLoss, train
from rni.activations import Activation
from rni.activations import make as activation
from rni.activations.module import ActivationModule
from rni.core.registry import part
from rni.losses.gradient import PARAMETERS
from rni.training import Adam, Checkpoint, GradientDescent, Torch
from rni.weights import Dale, Dense, LowRank, Weights

TASK = Integration((0.9, 0.8, 0.7), (1.0, 2.0, 0.5))
TORCH = {GradientDescent: torch.optim.SGD, Adam: lambda parameters, lr: torch.optim.Adam(parameters, lr, foreach=False)}
MODES = {
    "recurrent": ["recurrent.value"],
    "recurrent+decoders": ["recurrent.value", "decoders"],
    "decoders": ["decoders"],
    "all": ["recurrent.value", "decoders", "encoders"],
}
LAYOUTS = {
    "rows": lambda values: values.contiguous(),
    "columns": lambda values: values.T.contiguous().T,
    "every other": lambda values: torch.stack([values, values], dim=-1)[..., 0],
}


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def network(
    layout=LAYOUTS["rows"],
    f: str | Activation | ActivationModule = "tanh",
    neurons=8,
    task=TASK,
    form: Callable[[Tensor], Weights] = Dense,
):
    w, encoders, decoders = (
        layout(random(neurons, k, seed=k) / neurons**0.5) for k in (neurons, task.channels, task.channels)
    )
    return Network(task, encoders, decoders, form(w), f)


def steps_of_torch(net, loss, optimizer, names, steps=5):
    parameters = [net.get_parameter(name) for name in names]
    torch_optimizer = TORCH[optimizer](parameters, lr=0.01)
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        torch_optimizer.zero_grad()
        loss.value(net, loss.draw(generator, torch.float64)).backward()
        torch_optimizer.step()
        net.recurrent.project_()


def ours(net, loss, optimizer, mode, steps=5, **options):
    generator = torch.Generator().manual_seed(1)
    return train(
        net, loss, optimizer=optimizer, train=mode, learning_rate=0.01, steps=steps, generator=generator, **options
    )


def assert_same(found, expected):
    for (name, mine), (_, other) in zip(found.named_parameters(), expected.named_parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-12, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("optimizer", TORCH)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_steps_do_not_depend_on_how_parameters_lie_in_memory(optimizer, mode, layout):
    loss = BatchLoss(TASK, 3, 4)
    found, expected = network(LAYOUTS[layout]), network()
    ours(found, loss, optimizer(), mode)
    steps_of_torch(expected, loss, optimizer, MODES[mode])
    assert_same(found, expected)
    assert all(parameter.grad is None for parameter in found.parameters())


@pytest.mark.parametrize("optimizer", TORCH)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_that_a_user_puts_in_is_stepped_as_well(optimizer, layout):
    loss, found, expected = BatchLoss(TASK, 3, 4), network(), network()
    for parameter in found.parameters():
        parameter.data = LAYOUTS[layout](parameter.data)
    ours(found, loss, optimizer(), "all")
    steps_of_torch(expected, loss, optimizer, MODES["all"])
    assert_same(found, expected)


@pytest.mark.parametrize("optimizer", TORCH)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("loss", "f"),
    [(AveragedLoss(TASK, 4), "linear"), (ProxyLoss(TASK, 5), "tanh"), (ReLUProxyLoss(Integration(0.9)), "relu")],
)
def test_each_loss_trains_the_parts_asked_for(optimizer, mode, loss, f):
    found, expected = (network(f=f, task=loss.task) for _ in range(2))
    ours(found, loss, optimizer(), mode)
    steps_of_torch(expected, loss, optimizer, MODES[mode])
    assert_same(found, expected)


@pytest.mark.parametrize("optimizer", TORCH)
@pytest.mark.parametrize("mode", MODES)
def test_dales_law_holds_after_each_step(optimizer, mode):
    signs = torch.tensor([1.0, -1.0] * 4)
    loss, found, expected = BatchLoss(TASK, 3, 4), *(network(form=lambda w: Dale(w, signs)) for _ in range(2))
    ours(found, loss, optimizer(), mode)
    steps_of_torch(expected, loss, optimizer, MODES[mode])
    assert_same(found, expected)


@pytest.mark.parametrize("optimizer", TORCH)
@pytest.mark.parametrize("loss", [BatchLoss(TASK, 3, 4), AveragedLoss(TASK, 3), ProxyLoss(TASK, 5)])
def test_decoders_of_low_rank_weights_are_trained_alone(optimizer, loss):
    def factored(w):
        return LowRank(w[:, :3], w[:, 3:6])

    found, expected = (network(f="linear", form=factored) for _ in range(2))
    ours(found, loss, optimizer(), "decoders")
    steps_of_torch(expected, loss, optimizer, ["decoders"])
    assert_same(found, expected)


@pytest.mark.parametrize("mode", MODES)
def test_adam_has_the_bits_of_torchs(mode):
    loss, found, expected = BatchLoss(TASK, 3, 4), network(), network()
    torchs = Torch(torch.optim.Adam, fused=True)
    for net, optimizer in ((found, Adam()), (expected, torchs)):
        ours(net, loss, optimizer, mode)
    assert all(map(torch.equal, found.parameters(), expected.parameters()))


def test_adam_begins_where_what_is_restored_knows_nothing_of_a_part():
    loss, net, optimizer = BatchLoss(TASK, 3, 4), network(), Adam()
    ours(net, loss, optimizer, "recurrent")
    more = Adam()
    more.restore(optimizer.state())
    ours(net, loss, more, "recurrent+decoders")
    assert more.state()["recurrent.step"] == 10
    assert more.state()["decoders.step"] == 5
    assert more.state()["decoders.step"].dtype == torch.float32


def test_a_refused_step_leaves_what_is_restored():
    loss, net, other = BatchLoss(TASK, 3, 4), network(), network()
    bound = Torch(torch.optim.Adam(net.parameters()))
    ours(net, loss, bound, "recurrent")
    state, bound = bound.state(), Torch(torch.optim.Adam(net.parameters()))
    bound.restore(state)
    with pytest.raises(InputError, match="made for all"):
        ours(other, loss, bound, "recurrent")
    ours(net, loss, bound, "recurrent", steps=1)
    assert bound.state()["recurrent.step"] == 6


def test_optimizers_of_users_may_change_gradients_in_place():
    class Clipped(torch.optim.SGD):
        def step(self, closure=None):
            torch.nn.utils.clip_grad_norm_(self.param_groups[0]["params"], 1e-3)
            return super().step(closure)

    ours(network(), BatchLoss(TASK, 3, 4), Clipped, "recurrent+decoders")


def test_adam_does_without_torchs_compiler():
    """Its class would load it on the first step, which takes seconds in each process."""
    script = """
import sys, torch, rni
net = rni.Network(rni.Integration(0.9), *rni.vectors.independent(20, 1), torch.zeros(20, 20))
rni.train(net, rni.BatchLoss(net.task), optimizer="adam", steps=2)
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_adam_on_w_is_for_dense_weights():
    net = network(form=lambda w: LowRank(w[:, :3], w[:, 3:6]))
    with pytest.raises(InputError, match="LowRank; allowed: Dense or Dale for training W with Adam"):
        ours(net, BatchLoss(TASK), Adam(), "recurrent")


def test_one_adam_trains_several_networks_each_with_its_own_moments():
    loss, adam = BatchLoss(TASK, 3, 4), Adam()
    first, second = network(), network(f="relu")
    expected = [copy.deepcopy(net) for net in (first, second)]
    for net, twin in zip((first, second), expected, strict=True):
        ours(net, loss, adam, "recurrent+decoders")
        ours(twin, loss, Adam(), "recurrent+decoders")
        assert_same(net, twin)


def test_networks_may_take_turns_with_one_adam():
    loss, adam = BatchLoss(TASK, 3, 4), Adam()
    nets = network(), network(f="relu")
    alone = [copy.deepcopy(net) for net in nets]
    x = loss.draw(torch.Generator().manual_seed(1), torch.float64)
    for net in (*nets, *nets, *nets):
        adam.step(net, loss.gradient(net, x, PARAMETERS["all"])[1], 0.01)
    for net, twin in zip(nets, alone, strict=True):
        own = Adam()
        for _ in range(3):
            own.step(twin, loss.gradient(twin, x, PARAMETERS["all"])[1], 0.01)
        assert_same(net, twin)


def test_one_adam_goes_on_when_other_parts_are_trained():
    """As torch's does, where a parameter without a gradient keeps its moments."""
    loss, adam, found, expected = BatchLoss(TASK, 3, 4), Adam(), network(), network()
    x = loss.draw(torch.Generator().manual_seed(1), torch.float64)
    reference = torch.optim.Adam([expected.get_parameter(name) for name in MODES["all"]], lr=0.01, foreach=False)
    for mode in ("recurrent", "all", "decoders", "recurrent+decoders"):
        adam.step(found, loss.gradient(found, x, PARAMETERS[mode])[1], 0.01)
        reference.zero_grad()
        loss.value(expected, x).backward()
        for name in set(MODES["all"]) - set(MODES[mode]):
            expected.get_parameter(name).grad = None
        reference.step()
        assert_same(found, expected)


def test_a_used_adam_resumes_a_checkpoint_to_the_same_bits(tmp_path):
    loss = BatchLoss(TASK, 3, 4)
    whole, half, rest = network(), network(), network()
    expected = ours(whole, loss, Adam(), "all", steps=10)
    used = Adam()
    ours(network(f="relu"), loss, used, "all")
    checkpoint = Checkpoint(tmp_path / "run.checkpoint", seconds=0)
    ours(half, loss, used, "all", steps=5, checkpoint=checkpoint)
    assert ours(rest, loss, used, "all", steps=10, checkpoint=checkpoint) == expected
    assert all(torch.equal(a, b) for a, b in zip(rest.parameters(), whole.parameters(), strict=True))


@pytest.mark.parametrize("optimizer", TORCH)
@pytest.mark.parametrize("frozen", MODES["all"])
def test_what_requires_no_gradient_is_left_as_it_is(optimizer, frozen):
    loss, found, expected = BatchLoss(TASK, 3, 4), network(), network()
    for net in (found, expected):
        net.get_parameter(frozen).requires_grad_(False)
    ours(found, loss, optimizer(), "all")
    steps_of_torch(expected, loss, optimizer, [name for name in MODES["all"] if name != frozen])
    assert_same(found, expected)


def test_training_of_what_requires_no_gradient_is_refused():
    net = network()
    net.recurrent.value.requires_grad_(False)
    with pytest.raises(InputError, match=r"train: 'recurrent', but none of it requires a gradient"):
        ours(net, BatchLoss(TASK), GradientDescent(), "recurrent")


@part
class Gain(Activation):
    gain: float = 1.0
    shift: float = 0.0

    def __call__(self, current):
        return torch.tanh(self.gain * current + self.shift)


@pytest.mark.parametrize("optimizer", TORCH)
@pytest.mark.parametrize("loss", [BatchLoss(TASK, 3, 4), ProxyLoss(TASK, 5)])
def test_parameters_of_an_own_activation_are_trained_with_all(optimizer, loss):
    gain, shift = nn.Parameter(torch.linspace(0.5, 1.5, 8)), nn.Parameter(torch.tensor(0.1))
    f = activation(Gain(), gain=gain, shift=shift)
    found, expected = network(f=f), network(f=f)
    assert found.f.gain.dtype == torch.float64
    for net in (found, expected):
        net.f.shift.requires_grad_(False)
    ours(found, loss, optimizer(), "all")
    steps_of_torch(expected, loss, optimizer, [*MODES["all"], "f.gain"])
    assert_same(found, expected)
    assert not torch.equal(found.get_parameter("f.gain"), network(f=f).get_parameter("f.gain"))
    assert gain.dtype == torch.float32
    assert torch.equal(gain, torch.linspace(0.5, 1.5, 8))


CHOSEN = {
    "momentum": lambda parameters, lr: torch.optim.SGD(parameters, lr, momentum=0.9, weight_decay=0.01),
    "rmsprop": torch.optim.RMSprop,
    "adamw": torch.optim.AdamW,
    "nadam": torch.optim.NAdam,
}


@pytest.mark.parametrize("chosen", CHOSEN)
@pytest.mark.parametrize("form", [Dense, lambda w: Dale(w, torch.tensor([1.0, -1.0] * 4))])
def test_an_optimizer_of_the_users_choice_makes_torchs_own_steps(monkeypatch, chosen, form):
    monkeypatch.setitem(TORCH, chosen, CHOSEN[chosen])
    found, expected = network(form=form), network(form=form)
    loss = BatchLoss(TASK, 3, 4)
    ours(found, loss, CHOSEN[chosen](found.parameters(), lr=0.01), "all")
    steps_of_torch(expected, loss, chosen, MODES["all"])
    assert_same(found, expected)


def test_a_class_of_torch_is_made_for_what_is_trained(monkeypatch):
    monkeypatch.setitem(TORCH, "rmsprop", torch.optim.RMSprop)
    found, expected = network(), network()
    loss = BatchLoss(TASK, 3, 4)
    ours(found, loss, torch.optim.RMSprop, "recurrent+decoders")
    steps_of_torch(expected, loss, "rmsprop", MODES["recurrent+decoders"])
    assert_same(found, expected)


def test_a_chosen_optimizer_keeps_its_own_rates_unless_one_is_given():
    """Its groups' rates stay in proportion; what it was made with is there again afterwards."""

    def moved(**options):
        net = network()
        before = net.recurrent.matrix().detach().clone(), net.decoders.detach().clone()
        groups = [{"params": net.recurrent.parameters(), "lr": 0.01}, {"params": [net.decoders], "lr": 0.03}]
        chosen = torch.optim.SGD(groups)
        generator = torch.Generator().manual_seed(1)
        train(
            net,
            BatchLoss(TASK, 3, 4),
            optimizer=chosen,
            train="recurrent+decoders",
            steps=1,
            generator=generator,
            **options,
        )
        assert [group["lr"] for group in chosen.param_groups] == [0.01, 0.03]
        return torch.cat([(net.recurrent.matrix() - before[0]).flatten(), (net.decoders - before[1]).flatten()])

    own = moved()
    assert own.any()
    torch.testing.assert_close(moved(learning_rate=0.02), 2 * own)


def test_training_with_a_chosen_optimizer_goes_on_to_the_same_bits(tmp_path):
    loss, whole = BatchLoss(TASK, 3, 4), network()
    expected = ours(whole, loss, torch.optim.NAdam, "all", steps=12)
    checkpoint = Checkpoint(tmp_path / "half", seconds=0)

    def stop(step, value, net):
        if step == 7:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        ours(network(), loss, torch.optim.NAdam, "all", steps=12, checkpoint=checkpoint, callbacks=[stop])
    net = network()
    assert ours(net, loss, torch.optim.NAdam, "all", steps=12, checkpoint=checkpoint) == expected
    assert torch.equal(net.recurrent.matrix(), whole.recurrent.matrix())


def test_what_a_chosen_optimizer_can_not_do_is_refused():
    net, loss = network(), BatchLoss(TASK, 3, 4)
    partly = torch.optim.Adam([net.decoders])
    with pytest.raises(
        InputError, match="optimizer: Adam without encoders, recurrent; allowed: one made for all that is"
    ):
        ours(net, loss, partly, "all")
    for kind in (torch.optim.LBFGS, torch.optim.SparseAdam):
        with pytest.raises(
            InputError, match=rf"optimizer: {kind.__name__}; allowed: .* dense gradients, without a closure"
        ):
            ours(net, loss, kind(net.parameters()), "all")
    factored = network(form=lambda w: LowRank(w, w))
    with pytest.raises(InputError, match="weights: LowRank; allowed: Dense or Dale for training W with RMSprop"):
        ours(factored, loss, torch.optim.RMSprop, "recurrent")


@pytest.mark.parametrize("optimizer", [GradientDescent, torch.optim.AdamW])
@pytest.mark.parametrize(
    ("loss", "f"),
    [(BatchLoss(TASK, 3, 4), "tanh"), (AveragedLoss(TASK, 3), "linear"), (ProxyLoss(TASK, 5), "relu")],
)
def test_training_stays_on_the_device_of_the_network(monkeypatch, optimizer, loss, f):
    """torch refuses products of the CPU's numbers with those of the device "meta", which has sizes but no values."""
    monkeypatch.setattr(torch.Tensor, "__float__", lambda values: 1.0)
    net = network(f=f).to("meta")
    chosen = optimizer if optimizer is not GradientDescent else GradientDescent()
    assert len(train(net, loss, optimizer=chosen, train="all", learning_rate=0.01, steps=2)) == 2
    assert {parameter.device.type for parameter in net.parameters()} == {"meta"}
    assert loss(net).device.type == "meta"
    assert net.outputs(torch.zeros(2, 3, 3)).device.type == "meta"
