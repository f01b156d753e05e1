import pytest
import torch
from told import of, train_run, train_step_by_step

from rni import (
    AveragedLoss,
    BatchLoss,
    Diverged,
    InputError,
    Integration,
    Network,
    ProxyLoss,
    run,
    train,
    vectors,
)
from rni.activations import Tanh
from rni.losses import Loss
from rni.training import Adam, Checkpoint, GradientDescent, kept_step
from rni.weights import Dense, LowRank

TASK = Integration((0.9, 0.8))


def fresh(f="relu", neurons=60, dtype=torch.float32):
    encoders, decoders = vectors.independent(neurons, 2, torch.Generator().manual_seed(3))
    return Network(TASK, encoders, decoders, torch.zeros(neurons, neurons, dtype=dtype), f)


def options(optimizer, steps=60, **more):
    rate = 0.01 if isinstance(optimizer, GradientDescent) else 1e-3
    generator = torch.Generator().manual_seed(5)
    return {"optimizer": optimizer, "learning_rate": rate, "steps": steps, "generator": generator, **more}


@pytest.mark.parametrize("trained", ["recurrent", "recurrent+decoders", "all"])
def test_descent_takes_the_steps_that_torch_sgd_takes(trained):
    ours, theirs = fresh(dtype=torch.float64), fresh(dtype=torch.float64)
    loss = BatchLoss(TASK, 3, 16)
    train(ours, loss, train=trained, **options(GradientDescent()))
    count = {"recurrent": 1, "recurrent+decoders": 2, "all": 3}[trained]
    sgd = torch.optim.SGD([theirs.recurrent.value, theirs.decoders, theirs.encoders][:count], lr=0.01)
    generator = torch.Generator().manual_seed(5)
    for _ in range(60):
        sgd.zero_grad()
        loss.value(theirs, loss.draw(generator, torch.float64)).backward()
        sgd.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-11)


def test_adam_takes_the_steps_that_torch_adam_takes():
    ours, theirs = fresh(dtype=torch.float64), fresh(dtype=torch.float64)
    loss = BatchLoss(TASK, 3, 16)
    train(ours, loss, train="recurrent+decoders", **options(Adam()))
    adam = torch.optim.Adam([*theirs.recurrent.parameters(), theirs.decoders], lr=1e-3)
    generator = torch.Generator().manual_seed(5)
    for _ in range(60):
        adam.zero_grad()
        loss.value(theirs, loss.draw(generator, torch.float64)).backward()
        adam.step()
    torch.testing.assert_close(ours.recurrent.matrix(), theirs.recurrent.matrix(), rtol=1e-6, atol=1e-8)


def test_relu_training_leaves_the_null_start_because_its_slope_at_zero_is_one_half():
    losses = train(fresh(), BatchLoss(TASK, 3, 16), **options(GradientDescent(), 200))
    assert losses[-1] < 0.2 * losses[0]


class Killed(Exception):
    pass


@pytest.mark.parametrize("optimizer", [GradientDescent, Adam])
def test_a_killed_training_goes_on_to_the_same_bits(tmp_path, optimizer):
    loss = BatchLoss(TASK, 3, 16)
    whole = fresh()
    expected = train(whole, loss, train="all", schedule="cosine", **options(optimizer()))

    def kill(step, value, net):
        if step == 37:
            raise Killed

    checkpoint = Checkpoint(tmp_path / "run.checkpoint", "key", seconds=0)
    interrupted = options(optimizer(), callbacks=[kill], checkpoint=checkpoint)
    with pytest.raises(Killed):
        train(fresh(), loss, train="all", schedule="cosine", **interrupted)
    resumed = fresh()
    seen = []
    go_on = options(optimizer(), checkpoint=checkpoint, callbacks=[lambda step, value, net: seen.append(step)])
    losses = train(resumed, loss, train="all", schedule="cosine", **go_on)
    assert seen[0] == 37
    assert losses == expected
    assert all(torch.equal(a, b) for a, b in zip(resumed.parameters(), whole.parameters(), strict=True))


@pytest.mark.parametrize("form", [Dense, LowRank])
def test_the_network_of_the_lowest_loss_is_kept_also_by_a_killed_training(tmp_path, form):
    loss = BatchLoss(TASK, 3, 4)

    def choices(**more):
        return options(GradientDescent(), 200, train="recurrent+decoders", learning_rate=0.03, **more)

    def start():
        net, empty = fresh(), torch.zeros(60, 0)
        net.recurrent = Dense(torch.zeros(60, 60)) if form is Dense else LowRank(empty, empty.clone())
        return net

    seen, last, kept = [], start(), start()
    watch = [lambda step, value, net: seen.append(net.recurrent.matrix().clone())]
    losses = train(last, loss, **choices(callbacks=watch))
    assert losses == train(kept, loss, **choices(keep="best"))
    chosen = seen[kept_step(losses)]
    assert losses[-1] > losses[kept_step(losses)]
    assert torch.equal(kept.recurrent.matrix(), chosen)
    assert not torch.equal(kept.recurrent.matrix(), last.recurrent.matrix())

    def kill(step, value, net):
        if step == 190:
            raise Killed

    checkpoint, resumed = Checkpoint(tmp_path / "run.checkpoint", "key", seconds=0), start()
    with pytest.raises(Killed):
        train(start(), loss, **choices(keep="best", callbacks=[kill], checkpoint=checkpoint))
    assert losses == train(resumed, loss, **choices(keep="best", checkpoint=checkpoint))
    assert torch.equal(resumed.recurrent.matrix(), chosen)
    assert torch.equal(resumed.decoders, kept.decoders)


def test_a_checkpoint_without_the_best_network_is_refused_before_anything_changes(tmp_path):
    loss, net = BatchLoss(TASK, 3, 4), fresh()
    checkpoint = Checkpoint(tmp_path / "run.checkpoint", seconds=0)
    train(fresh(), loss, **options(GradientDescent(), 5, checkpoint=checkpoint))
    with pytest.raises(InputError, match="of a training that keeps the last network; allowed: one that keeps the best"):
        train(net, loss, **options(GradientDescent(), 9, checkpoint=checkpoint), keep="best")
    assert not net.recurrent.matrix().any()


def test_runs_tell_the_step_whose_network_they_kept(tmp_path):
    raw = {"task": {"decays": [0.9]}, "network": {"neurons": 40}}
    training = {"batch": 4, "steps": 60, "learning_rate": 0.03, "keep": "best"}
    seen = {}
    watch = [lambda step, value, net: seen.setdefault(step, net.recurrent.matrix().clone())]
    result = run(train_run(raw | {"training": training}), callbacks=watch)
    assert 0 < result.step < 60
    assert torch.equal(result.network.recurrent.matrix(), seen[result.step])
    assert run(train_run(raw | {"training": training | {"keep": None}})).step == 60
    proxy = {"loss": "proxy", "steps": 50, "keep": "best"}
    exact = [train_run(raw | {"training": each}) for each in (proxy, proxy | {"keep": None})]
    assert [run(each).step for each in exact] == [50, 50]


def test_the_last_network_is_kept_where_its_loss_is_the_lowest():
    last, kept, loss = fresh("linear"), fresh("linear"), AveragedLoss(TASK, 3)
    losses = train_step_by_step(last, loss, learning_rate=0.01, steps=53)
    assert losses == train(kept, loss, learning_rate=0.01, steps=53, keep="best")
    assert kept_step(losses) == 53
    assert torch.equal(kept.recurrent.matrix(), last.recurrent.matrix())


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    path = tmp_path / "run.checkpoint"
    net, generator = fresh(), torch.Generator()
    Checkpoint(path, "one").save(net, GradientDescent(), generator, [1.0])
    with pytest.raises(InputError, match="another run"):
        Checkpoint(path, "two").resume(net, GradientDescent(), generator)


@pytest.mark.parametrize("optimizer", [GradientDescent, Adam])
def test_divergence_names_step_loss_and_learning_rate_and_keeps_what_was_done(tmp_path, optimizer):
    checkpoint = Checkpoint(tmp_path / "run.checkpoint")
    net = fresh()
    with pytest.raises(Diverged, match=r"step \d+: loss .* learning_rate: 50") as caught:
        train(net, BatchLoss(TASK, 3, 16), **options(optimizer()) | {"learning_rate": 50.0, "checkpoint": checkpoint})
    assert len(caught.value.losses) == caught.value.step > 0
    assert checkpoint.resume(fresh(), optimizer(), torch.Generator()) == caught.value.losses


def test_training_stops_at_the_loss_asked_for():
    losses = train(fresh(), BatchLoss(TASK, 3, 64), stop_loss=0.3, **options(GradientDescent(), 5000))
    assert losses[-1] < 0.3 <= losses[-2]
    assert len(losses) < 5000


def test_linear_descent_on_the_averaged_loss_finds_a_generalizing_integrator(generator):
    net = fresh("linear", dtype=torch.float64)
    losses = train(net, AveragedLoss(TASK, 3), learning_rate=0.02, steps=20000, stop_loss=1e-24)
    assert losses[-1] < 1e-20
    x = torch.randn(4, 300, 2, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(net.outputs(x), TASK.targets(x), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train": "recurent"}, r"train: 'recurent'; allowed: 'recurrent', 'recurrent\+decoders', 'decoders', 'all'"),
        ({"train": "everything"}, "train: 'everything'; allowed"),
        ({"learning_rate": -0.1}, "learning_rate: -0.1; allowed: a number above 0"),
        ({"learning_rate": 0.0}, "learning_rate: 0.0; allowed: a number above 0"),
        ({"learning_rate": float("nan")}, "learning_rate: nan; allowed"),
        ({"learning_rate": "fast"}, "learning_rate: 'fast'; allowed"),
        ({"steps": -1}, "steps: -1; allowed: a whole number from 0 on"),
        ({"steps": 1.5}, "steps: 1.5; allowed"),
        ({"stop_loss": float("nan")}, "stop_loss: nan; allowed: 0 or more"),
        ({"keep": "bst"}, "keep: 'bst'; allowed: 'best'"),
        ({"schedule": "cosin"}, "schedule: 'cosin'; allowed: 'constant', 'warmup', 'cosine'"),
        ({"optimizer": "adm"}, "optimizer: 'adm'; allowed: 'sgd', 'adam'"),
        ({"optimizer": Adam}, "optimizer: <class .*Adam'>; allowed: 'sgd', 'adam'"),
        ({"optimizer": 3}, "optimizer: 3; allowed: 'sgd', 'adam'"),
    ],
)
def test_what_no_training_can_be_made_of_is_refused(change, message):
    net = fresh()
    with pytest.raises(InputError, match=message):
        train(net, BatchLoss(TASK), **({"learning_rate": 0.01, "steps": 3} | change))
    assert not net.recurrent.matrix().any()
    linear = fresh("linear")
    with pytest.raises(InputError, match=message):
        train(linear, AveragedLoss(TASK), **({"learning_rate": 0.01, "steps": 3} | change))
    assert isinstance(linear.recurrent, Dense)


@pytest.mark.parametrize(("name", "optimizer"), [("sgd", GradientDescent), ("adam", Adam)])
def test_optimizers_are_known_by_name(name, optimizer):
    loss = BatchLoss(TASK, 3, 4)
    named, given = (train(fresh(), loss, **options(kind, 5, learning_rate=0.01)) for kind in (name, optimizer()))
    assert named == given


def test_a_network_that_blows_up_before_it_learns_is_not_blamed_on_the_learning_rate(tmp_path):
    net, checkpoint = fresh("linear"), Checkpoint(tmp_path / "run.checkpoint")
    with torch.no_grad():
        of(Dense, net.recurrent).value.fill_(1e3)
    with pytest.raises(Diverged, match=r"at step 0: loss .*; before anything was learned; allowed: smaller weights"):
        train(net, BatchLoss(TASK, 3, 4), **options(Adam(), checkpoint=checkpoint))
    assert not checkpoint.path.exists()


def test_a_loss_without_a_learning_rate_of_its_own_needs_one():
    class Own(BatchLoss):
        def default_learning_rate(self):
            return Loss.default_learning_rate(self)

    assert len(train(fresh(), Own(TASK), learning_rate=0.01, steps=2)) == 2
    with pytest.raises(InputError, match="learning_rate: left open, and Own has none of its own"):
        train(fresh(), Own(TASK), steps=2)


@pytest.mark.parametrize("loss", [BatchLoss(TASK, 3, 8), ProxyLoss(TASK, 16), AveragedLoss(TASK, 3)])
@pytest.mark.parametrize("form", [Dense, lambda w: LowRank(w[:, :0], w[:, :0])])
def test_what_was_trained_can_be_differentiated(loss, form):
    """Steps leave out the accounts of automatic differentiation; nothing of theirs may stay behind."""
    net = fresh("linear" if isinstance(loss, AveragedLoss) else "tanh", 20)
    net = net.changed(form(torch.zeros(20, 20)))
    train(net, loss, train="recurrent+decoders", learning_rate=0.01, steps=5)
    loss(net).backward()
    assert all(parameter.grad is not None for parameter in net.parameters())


def test_functions_without_a_derivative_and_own_ones_are_differentiated_while_training():
    class Own(Tanh):
        def derivative(self, current):
            with torch.enable_grad():
                nu = current.detach().requires_grad_()
                return torch.autograd.grad(torch.tanh(nu).sum(), nu)[0]

    def trained(f):
        return train(fresh(f, 20), BatchLoss(TASK, 3, 8), steps=5, generator=torch.Generator().manual_seed(0))

    assert trained(torch.nn.functional.silu)[-1] > 0
    assert trained(Own()) == pytest.approx(trained("tanh"))


def test_activity_that_a_hook_keeps_can_be_differentiated():
    net, kept = fresh("tanh", 20), []
    net.f.register_forward_hook(lambda module, given, activity: kept.append(activity))
    train(net, BatchLoss(TASK, 3, 8), steps=2)
    (kept[0] * torch.ones(20, requires_grad=True)).sum().backward()
