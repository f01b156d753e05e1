import pytest
import torch
from told import of, train_run, train_step_by_step

from rni import InputError, Integration, Network, run, vectors
from rni.analysis import svd
from rni.core.rng import stream
from rni.losses import ReLUProxyLoss
from rni.training import Checkpoint, train
from rni.weights import Dale, Dense, LowRank, dale_signs, random_matrix


def test_every_form_multiplies_like_its_matrix(generator):
    left, right = (torch.randn(8, 2, generator=generator, dtype=torch.float64) for _ in range(2))
    h = torch.randn(5, 8, generator=generator, dtype=torch.float64)
    for form in (Dense(left @ right.T), LowRank(left, right), Dale(left @ right.T, dale_signs(8, 0.25, generator))):
        torch.testing.assert_close(form(h), h @ form.matrix().T)
        torch.testing.assert_close(form.pull_back(h), h @ form.matrix())


def test_random_matrix_has_exactly_the_spectral_radius_asked_for(generator):
    for signs in (None, dale_signs(100, 0.25, generator)):
        w = random_matrix(100, 0.7, generator, signs)
        assert float(torch.linalg.eigvals(w).abs().max()) == pytest.approx(0.7)
    assert not random_matrix(10, 0.0).any()


def test_dale_columns_keep_their_sign_after_a_step(generator):
    signs = dale_signs(40, 0.25, generator)
    assert int((signs < 0).sum()) == 10
    dale = Dale(random_matrix(40, 0.5, generator, signs), signs)
    before = dale.matrix().detach().clone()
    left, right = (torch.randn(3, 40, generator=generator, dtype=torch.float64) for _ in range(2))
    dale.descend_(left, right, 0.1)
    stepped = before - 0.1 * left.T @ right
    torch.testing.assert_close(dale.matrix().detach(), torch.where(stepped * signs > 0, stepped, 0.0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_projection_removes_wrong_signs_and_leaves_the_other_weights_to_the_bit(generator, dtype):
    signs = dale_signs(40, 0.25, generator)
    w = torch.randn(40, 40, generator=generator, dtype=dtype)
    found = Dale(w, signs).matrix().detach()
    assert found.dtype == dtype
    assert torch.equal(found, torch.where(w * signs > 0, w, 0.0))


def test_wrong_shapes_are_named():
    with pytest.raises(InputError, match=r"recurrent: shape \(2, 3\)"):
        Dense(torch.zeros(2, 3))
    with pytest.raises(InputError, match=r"recurrent_left, recurrent_right: shapes \(4, 2\) and \(4, 1\)"):
        LowRank(torch.zeros(4, 2), torch.zeros(4, 1))
    with pytest.raises(InputError, match=r"inhibitory: 1\.5"):
        dale_signs(10, 1.5)


def silent(neurons, recurrent, scale=2.0):
    e, d = vectors.independent(neurons, 1, torch.Generator().manual_seed(1))
    return Network(Integration(0.995, scale), e, d, recurrent)


def test_descent_on_factors_is_descent_on_the_matrix():
    n, tolerance, path = 200, 1e-8, {}
    zero = torch.zeros(n, n, dtype=torch.float64)
    for name, form in (("dense", Dense(zero)), ("factored", LowRank(zero[:, :0], zero[:, :0], tolerance))):
        states, ranks = [], []

        def keep(step, loss, net, states=states, ranks=ranks):
            if step % 50 == 49:
                states.append(net.recurrent.matrix().detach().clone())
            if (factors := net.recurrent.factors()) is not None:
                ranks.append(factors[0].shape[1])
                assert all(factor.shape == (n, ranks[-1]) for factor in net.recurrent.parameters())

        net = silent(n, form)
        losses = train_step_by_step(net, ReLUProxyLoss(net.task), learning_rate=0.036, steps=500, callbacks=[keep])
        path[name] = torch.stack(states), torch.tensor(losses), ranks
    (exact, losses, _), (found, found_losses, ranks) = path["dense"], path["factored"]
    # of most steps something is left out, each time within the tolerance of sigma_1; descent forgets most of it
    distance = torch.linalg.matrix_norm(found - exact, 2) / torch.linalg.matrix_norm(exact, 2)
    assert 0 < float(distance.max()) < 500 / 8 * tolerance
    torch.testing.assert_close(found_losses, losses, rtol=1e-5, atol=1e-12)
    assert max(ranks) < 12 + 32  # what is left after a compression, and the room beyond it


def test_descent_from_zero_on_the_proxy_keeps_the_rank_below_twelve():
    empty = torch.zeros(200, 0, dtype=torch.float64)
    net = silent(200, LowRank(empty, empty))
    ranks = []

    def keep(step, loss, net):
        net.recurrent.compress_()
        ranks.append(net.recurrent.left.shape[1])

    train_step_by_step(net, ReLUProxyLoss(net.task), learning_rate=0.036, steps=500, callbacks=[keep])
    assert ranks[0] == 0
    assert 1 < max(ranks) < 12


def test_compression_moves_the_matrix_by_less_than_its_tolerance(generator):
    basis = [torch.linalg.qr(torch.randn(30, 6, generator=generator, dtype=torch.float64))[0] for _ in range(2)]
    values = torch.tensor([5.0, 1.0, 1e-2, 4e-4, 1e-5, 1e-9], dtype=torch.float64)
    form = LowRank(basis[0] * values, basis[1], tolerance=1e-4)
    before = form.matrix().detach()
    form.compress_()
    assert form.left.shape == form.right.shape == (30, 3)
    moved = torch.linalg.matrix_norm(form.matrix().detach() - before, 2)
    assert float(moved) == pytest.approx(4e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_compressed_factors_are_the_singular_vectors_of_the_matrix(generator, dtype):
    n = 5000  # more than one block of neurons
    left, right = (torch.randn(n, 6, generator=generator, dtype=dtype) for _ in range(2))
    form = LowRank(left, right, room=4)
    exact = svd(form)
    form.compress_()
    precision = 100 * torch.finfo(dtype).eps
    eye = torch.eye(6, dtype=dtype)
    torch.testing.assert_close(form.right.T @ form.right, eye, rtol=0, atol=precision)
    torch.testing.assert_close(form.left.norm(dim=0), exact.values, rtol=precision, atol=0)
    h = torch.randn(3, n, generator=generator, dtype=dtype)
    torch.testing.assert_close(form(h), (h @ right) @ left.T, rtol=0, atol=precision * float(exact.values[0]))


def test_loaded_factors_multiply_to_the_same_bits(generator):
    left, right = (torch.randn(1000, 7, generator=generator) for _ in range(2))
    saved = LowRank(left, right)
    empty = torch.zeros(1000, 0)
    loaded = LowRank(empty, empty)
    loaded.load_state_dict({key: value.contiguous() for key, value in saved.state_dict().items()})
    h = torch.randn(16, 1000, generator=generator)
    assert torch.equal(loaded(h), saved(h))
    assert loaded.left.stride() == saved.left.stride()  # rounding may depend on the order in memory


def test_a_step_that_compresses_is_the_step_on_the_matrix(generator):
    left, right = (torch.randn(50, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    rows = [torch.randn(4, 50, generator=generator, dtype=torch.float64) for _ in range(2)]
    for room, rank in ((4, 7), (40, 7)):
        form = LowRank(left, right, room=room)
        form.descend_(rows[0], rows[1], 0.1)
        assert form.left.shape == form.right.shape == (50, rank)
        torch.testing.assert_close(form.matrix(), left @ right.T - 0.1 * rows[0].T @ rows[1])


def test_steps_within_the_span_leave_it_and_new_directions_join(generator):
    """Terms in V's span change the left factor alone; what is outside, and above the tolerance, comes to V; what is
    below it does not."""
    n, values = 60, torch.tensor([3.0, 2.0, 1.0], dtype=torch.float64)
    basis = torch.linalg.qr(torch.randn(n, 6, generator=generator, dtype=torch.float64))[0].T
    left = torch.linalg.qr(torch.randn(n, 3, generator=generator, dtype=torch.float64))[0]
    form = LowRank(left * values, basis[:3].T, tolerance=1e-4)
    form.compress_()
    right = form.right.detach().clone()
    rows = torch.randn(5, n, generator=generator, dtype=torch.float64) * 1e-2
    inside = torch.randn(5, 3, generator=generator, dtype=torch.float64) @ basis[:3]
    exact = form.matrix().detach() - 0.1 * rows.T @ inside
    form.descend_(rows, inside, 0.1)
    assert torch.equal(form.right, right)
    torch.testing.assert_close(form.matrix(), exact)
    weight = 0.1 * float(rows[0].norm())
    for size, direction in ((2e-4, basis[3:4]), (2e-5, basis[4:5])):  # in parts of sigma_1
        outside = size * 3 / weight * direction
        before = form.matrix().detach()
        form.descend_(rows[:1], inside[:1] + outside, 0.1)
        moved = form.matrix().detach() - (before - 0.1 * rows[:1].T @ (inside[:1] + outside))
        assert form.right.shape == (n, 4)
        assert float(torch.linalg.matrix_norm(moved, 2)) == pytest.approx(0 if size > 1e-4 else 3 * size, abs=1e-12)


def test_factors_are_compressed_where_new_directions_are_more_than_there_is_room_for(generator):
    n = 200
    left, right = (torch.randn(n, 2, generator=generator, dtype=torch.float64) for _ in range(2))
    form, exact = LowRank(left, right, tolerance=1e-3, room=3), left @ right.T
    ranks = []
    for _ in range(12):
        rows = torch.randn(2, 1, n, generator=generator, dtype=torch.float64)
        form.descend_(rows[0], rows[1], 0.01)  # 1e-2 of W
        exact = exact - 0.01 * rows[0].T @ rows[1]
        ranks.append((int(form.kept), form.left.shape[1]))
    assert ranks == [(3, k) for k in (3, 4, 5, 6)] + [(7, k) for k in (7, 8, 9, 10)] + [
        (11, k) for k in (11, 12, 13, 14)
    ]
    torch.testing.assert_close(form.matrix(), exact)


def test_a_factored_matrix_in_single_precision_does_not_collect_rounding_errors():
    empty = torch.zeros(100, 0)
    net = silent(100, LowRank(empty, empty))
    train_step_by_step(net, ReLUProxyLoss(net.task), learning_rate=0.036, steps=500)
    recurrent = of(LowRank, net.recurrent)
    recurrent.compress_()
    assert recurrent.left.shape[1] < 12


@pytest.mark.parametrize("loss", ["batch", "proxy"])
def test_factored_training_goes_on_from_a_checkpoint_to_the_same_bits(tmp_path, loss):
    raw = {
        "task": {"decays": [0.995]},
        "network": {"neurons": 40, "weights": "lowrank", "precision": "float64"},
        "training": {"loss": loss, "steps": 60, "schedule": "constant"},
    }
    spec = train_run(raw)
    whole = run(spec)
    checkpoint = tmp_path / "half.safetensors"

    def stop(step, loss, net):
        if step == 37:
            raise RuntimeError

    net, kept = spec.build(), Checkpoint(checkpoint, spec.key(), seconds=0)
    options = {"learning_rate": spec.training.learning_rate, "schedule": spec.training.schedule}
    options |= {"steps": 60, "checkpoint": kept}
    if loss == "batch":
        options["generator"] = stream(spec.seed, "training")
    with pytest.raises(RuntimeError):
        train(net, spec.loss(), callbacks=[stop], **options)
    again = run(spec, checkpoint=checkpoint)
    assert again.losses == whole.losses
    assert torch.equal(again.network.recurrent.matrix(), whole.network.recurrent.matrix())


@pytest.mark.parametrize(
    ("section", "field", "value"), [("training", "optimizer", "adam"), ("network", "initial_radius", 0.5)]
)
def test_factored_weights_start_from_zero_and_descend(section, field, value):
    raw = {"task": {"decays": [0.9]}, "network": {"weights": "lowrank"}, "training": {}}
    train_run(raw)
    raw[section] = raw[section] | {field: value}
    with pytest.raises(InputError, match=rf"{section}\.{field}: {value!r}; allowed: .* for lowrank weights"):
        train_run(raw)


def test_factored_weights_may_start_from_a_random_matrix_of_low_rank():
    raw = {"task": {"decays": [0.9]}, "network": {"neurons": 60, "initial_radius": 0.3}, "training": {"steps": 5}}
    raw["network"]["weights"] = {"name": "lowrank", "rank": 4}
    w = train_run(raw).build().recurrent.matrix().detach()
    assert int(torch.linalg.matrix_rank(w)) == 4
    assert float(torch.linalg.eigvals(w).abs().max()) == pytest.approx(0.3, rel=1e-4)
    with pytest.raises(InputError, match=r"network.initial_radius: 0.0; allowed: above 0 for lowrank weights"):
        train_run(raw | {"network": raw["network"] | {"initial_radius": 0.0}})
