import numpy as np
import pytest
import torch
from told import of, there

import rni
from rni.designs.certificate import _rounding, coordinates
from rni.designs.extremes import circle_maxima, relu_maxima, shared_axes_bound
from rni.theory import multiplexed
from rni.weights import LowRank

ROUGH = 3e-3


def designed(decays, activation="relu", neurons=100, disturbance=0.0, dtype=torch.float64):
    """A designed network, its factor M disturbed so that the error is far above rounding."""
    net = rni.design(rni.Integration(decays), neurons, activation).network
    left, right = (factor.detach() for factor in of(LowRank, net.recurrent).factors())
    noise = torch.randn(right.shape, generator=torch.Generator().manual_seed(1), dtype=right.dtype)
    right = right + disturbance * right.norm() * noise / neurons**0.5
    return rni.Network(net.task, net.encoders, net.decoders, LowRank(left.to(dtype), right.to(dtype)), net.f)


def adversarial_inputs(net, duration):
    """Inputs within [-1, 1] that make the error large: random ones, constants, and ascent on the error itself."""
    generator = torch.Generator().manual_seed(0)
    channels, dtype = net.channels, net.dtype
    random = torch.randn(4, duration, channels, generator=generator, dtype=dtype).sign()
    constant = torch.cartesian_prod(*[torch.tensor([-1.0, 0.0, 1.0])] * channels).reshape(-1, 1, channels)
    constant = constant.expand(-1, duration, -1).to(dtype)
    climbing = random[:2].clone().requires_grad_()
    for _ in range(8):
        last = (net.outputs(climbing) - net.task.targets(climbing))[:, -1]
        (slope,) = torch.autograd.grad(last.square().sum(), climbing)
        # the error is largest where each input has the sign of its influence
        climbing = slope.sign().where(slope != 0, climbing).detach().requires_grad_()
    return torch.cat([random, constant, greedy_inputs(net, duration), climbing.detach()])


@torch.no_grad()
def greedy_inputs(net, duration):
    """At each step the input, of all combinations of signs, after which the error of the first channel is largest."""
    choices = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * net.channels).reshape(-1, net.channels).to(net.dtype)
    h = net.encoders.new_zeros(len(choices), net.neurons)
    target = torch.zeros_like(choices)
    chosen = []
    decays, scales = choices.new_tensor(net.task.decays), choices.new_tensor(net.task.scales)
    for _ in range(duration):
        _, tried = next(net.steps(choices[:, None], h))
        targets = decays * (target + scales * choices)
        best = (net.readout(tried) - targets)[:, 0].abs().argmax()
        h, target = tried[best].expand_as(tried), targets[best]
        chosen.append(choices[best])
    return torch.stack(chosen)[None]


@torch.no_grad()
def largest_errors(net, inputs):
    return (net.outputs(inputs) - net.task.targets(inputs)).abs().amax((0, 1)).tolist()


@pytest.mark.parametrize("activation", ["linear", "relu"])
@pytest.mark.parametrize("decays", [(0.9,), (0.9, 0.85), (0.9, 0.85, 0.8)])
def test_no_sequence_exceeds_the_certificate(activation, decays):
    net = designed(decays, activation, disturbance=ROUGH)
    certificate = rni.certify(net)
    errors = largest_errors(net, adversarial_inputs(net, 60))
    assert all(error <= bound for error, bound in zip(errors, certificate.bounds, strict=True))
    assert max(certificate.bounds) < 3 * max(errors)
    assert certificate.rigorous


@pytest.mark.parametrize("decays", [(0.8,), (0.8, 0.75)])
def test_no_sequence_exceeds_the_estimate_for_sigmoids(decays):
    net = designed(decays, "sigmoid", 400)
    certificate = rni.certify(net)
    assert not certificate.rigorous
    errors = largest_errors(net, adversarial_inputs(net, 60))
    assert all(error <= bound for error, bound in zip(errors, certificate.bounds, strict=True))
    assert max(certificate.relative) < 0.3


@pytest.mark.parametrize(("dtype", "rounding"), [(torch.float32, 0.1), (torch.float64, 1e-10)])
@pytest.mark.parametrize("channels", [1, 2, 4])
def test_exact_designs_are_certified_to_rounding_for_any_number_of_channels(channels, dtype, rounding):
    net = designed((0.9, 0.85, 0.8, 0.75)[:channels], neurons=150, dtype=dtype)
    certificate = rni.certify(net)
    assert certificate.rigorous
    assert max(certificate.relative) < rounding
    errors = largest_errors(net, torch.cat([greedy_inputs(net, 50), torch.ones(1, 50, channels, dtype=dtype)]))
    assert all(error <= bound for error, bound in zip(errors, certificate.bounds, strict=True))


def mixed_network(seed, dtype, activation):
    """An exact integrator with encoders of all sizes, its channels mixed in the factors of W, rounded to the dtype."""
    rng = np.random.default_rng(seed)
    channels = int(rng.integers(2, 4))
    e, d = torch.as_tensor(rng.normal(size=(2, 40, channels)) * 10.0 ** rng.uniform(-4, 4, (2, 1, channels)))
    decays, scales = rng.uniform(0.3, 0.95, channels).tolist(), (10.0 ** rng.uniform(-2, 2, channels)).tolist()
    left, right = multiplexed(e, d, decays, scales)
    first, second = (np.linalg.qr(rng.normal(size=(channels, channels)))[0] for _ in range(2))
    mixing = torch.as_tensor(first * 10.0 ** rng.uniform(-4, 4, channels) @ second)
    left, right = left @ mixing, right @ torch.linalg.inv(mixing).T
    if activation == "relu":  # [v]_+ - [-v]_+ = v
        e, d, left, right = (
            torch.cat([e, -e]) / 2,
            torch.cat([d, -d]),
            torch.cat([left, -left]),
            torch.cat([right, -right]),
        )
    weights = LowRank(left.to(dtype), right.to(dtype))
    return rni.Network(rni.Integration(decays, scales), e, d, weights, activation)


@pytest.mark.parametrize("activation", ["linear", "relu"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rounding_that_leaks_between_mixed_channels_stays_below_the_certificate(dtype, activation):
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(8, 60, 3))
    ratios = []
    for seed in (13, 233, 241, *range(20 if activation == "linear" else 3)):
        net = mixed_network(seed, dtype, activation)
        try:
            certificate = rni.certify(net)
        except rni.InputError:  # of the small channels rounding has left nothing
            continue
        inputs = torch.as_tensor(signs[..., : net.channels], dtype=dtype)
        with torch.no_grad():
            errors = (net.outputs(inputs).double() - net.task.targets(inputs.double())).abs().amax((0, 1))
        if max(certificate.bounds) < float("inf"):
            ratios += (errors / torch.tensor(certificate.bounds)).tolist()
    assert max(ratios) <= 1
    assert max(ratios) > 1e-3  # the bound is not so wide that it says nothing


def test_rounding_is_part_of_the_estimate_for_smooth_networks_in_single_precision():
    wide, narrow = (designed((0.8,), "sigmoid", 400, dtype=dtype) for dtype in (torch.float32, torch.float64))
    single, double = rni.certify(wide), rni.certify(narrow)
    step = (
        wide.neurons * torch.finfo(torch.float32).eps / 2 * wide.decoders.detach().abs().sum()
    )  # activities are up to 1
    assert single.output_residuals[0] - double.output_residuals[0] > 0.1 * float(step)
    assert max(single.relative) < 2 * max(double.relative)


@pytest.mark.parametrize("activation", ["relu", "sigmoid"])
@pytest.mark.parametrize(("decay", "scale", "has_bounds"), [(1.0, 1.0, False), (0.8, 0.0, True), (0.8, 1e-310, True)])
def test_an_infinite_bound_is_never_called_certified(activation, decay, scale, has_bounds):
    net = designed((0.8,), activation, 400)
    other = rni.Integration(decay, scale)
    certificate = rni.certify(rni.Network(other, net.encoders, net.decoders, net.recurrent, net.f))
    assert certificate.relative == (float("inf"),)
    assert (certificate.bounds[0] < float("inf")) == (certificate.obstacle is None) == has_bounds
    assert str(certificate).startswith("no bound")


def test_largest_residual_on_the_circle_is_that_of_a_fine_grid(generator):
    left, weights, wanted = (torch.randn(shape, generator=generator).double() for shape in ((30, 2), (30, 4), (4, 2)))
    weights = weights / 30
    angles = torch.linspace(0, 2 * torch.pi, 200_001).double()
    a = torch.stack([angles.cos(), angles.sin()], dim=1)
    grid = ((a @ left.T).clamp(min=0) @ weights - a @ wanted.T).abs().amax(0)
    exact = circle_maxima(left, weights, wanted)
    assert bool((exact >= grid - 1e-12).all())
    torch.testing.assert_close(exact, grid, rtol=1e-4, atol=0)


def test_bound_by_shared_axes_holds_and_where_it_is_rough_nothing_is_called_proven(generator):
    left, weights = (torch.randn(shape, generator=generator).double() for shape in ((2000, 3), (2000, 6)))
    weights = weights / len(weights)
    wanted = weights.T @ left / 2
    a = torch.nn.functional.normalize(torch.randn(2000, 3, generator=generator).double(), dim=1)

    def largest(left):
        return ((a @ left.T).clamp(min=0) @ weights - a @ wanted.T).abs().amax(0)

    assert bool((shared_axes_bound(left, weights, wanted) >= largest(left)).all())
    maxima, proven = relu_maxima(left, weights, wanted)
    assert not proven
    assert bool((maxima >= largest(left)).all())
    along_one_axis = left[:, :1] * torch.tensor([[1.0, 2.0, 2.0]]).double() / 3
    maxima, proven = relu_maxima(along_one_axis, weights, wanted)
    assert proven
    assert bool((maxima >= largest(along_one_axis)).all())


def test_errors_that_could_feed_on_themselves_have_no_bound():
    certificate = rni.certify(designed((0.995, 0.99), disturbance=0.05))
    assert certificate.bounds == (float("inf"), float("inf"))
    assert certificate.obstacle
    assert rni.certify(rni.design(rni.Integration(1.0), 50).network).bounds == (float("inf"),)


def test_bound_does_not_depend_on_how_the_rank_d_matrix_is_written():
    net = designed((0.9, 0.85), disturbance=ROUGH)
    dense = rni.Network(net.task, net.encoders, net.decoders, net.recurrent.matrix(), "relu")
    certificate, other = rni.certify(net), rni.certify(dense)
    assert other.bounds == pytest.approx(certificate.bounds, rel=1e-6)
    assert certificate.rigorous
    assert not other.rigorous
    single = rni.certify(rni.Network(net.task, net.encoders, net.decoders, net.recurrent.matrix().float(), "relu"))
    assert single.bounds == pytest.approx(certificate.bounds, rel=0.1)


def test_what_has_no_certificate_is_refused(small):
    net = designed((0.9,))
    task, e, d = net.task, net.encoders, net.decoders
    nothing, few = torch.zeros(100, 100).double(), torch.ones(1, 2).double()
    networks_and_values = (
        (small(), 12),  # the rank of W
        (rni.Network(task, e, d, nothing, "relu"), 0),
        (rni.Network(task, e, d, LowRank(nothing[:, :0], nothing[:, :0])), 0),
        (rni.Network(rni.Integration([0.9, 0.8]), few, few, torch.ones(1, 1).double(), "relu"), 1),
        (rni.Network(task, e * torch.nan, d, net.recurrent, "relu"), None),
        (rni.Network(task, e, d, LowRank(e, 0 * e), "relu"), None),  # does not transmit its inputs
    )
    for refused, value in networks_and_values:
        with pytest.raises(rni.InputError) as error:
            rni.certify(refused)
        assert (error.value.field, error.value.value) == ("network", value)


@pytest.mark.parametrize("leak", [1.0, 0.3])
@pytest.mark.parametrize("kind", ["own factors", "matrix", "more factors"])
@torch.no_grad()
def test_rounding_of_a_step_summand_by_summand(kind, leak, generator):
    """The sums of the certificate's text, product by product; in single precision the small ones count too."""
    n, channels = 7, 2
    a, b, e, d = torch.randn(4, n, channels, generator=generator).double()
    beyond = torch.cat([b, torch.zeros(n, 1)], 1), torch.cat([a, a[:, :1]], 1)  # of rank 2, by three factors
    weights = {"own factors": LowRank(a, b), "matrix": a @ b.T, "more factors": LowRank(*beyond)}[kind]
    net = rni.Network(rni.Integration([0.9, 0.8]), e, d, weights, "relu", leak).float()
    basis = coordinates(net)
    box, activity, slope = (torch.rand(k, generator=generator).double() + 0.5 for k in (channels, n, n))
    found = _rounding(net, basis, box, activity, slope)

    def off(k):
        u = 2.0**-24 + 2.0**-53
        return k * u / (1 - k * u)

    a, b, gauge, m = (part.abs().numpy() for part in (basis.a, basis.b, basis.gauge, basis.right))
    inverse = np.abs(np.linalg.inv(basis.gauge.numpy()))
    d, ex, h, f = net.decoders.double().abs(), net.encoders.double().abs().sum(1), activity, slope
    neurons, both = range(n), range(channels)
    read = [sum(b[i, k] * ex[i] for i in neurons) for k in both]
    p = [sum(gauge[k, c] * box[c] for c in both) + off(n) * read[k] for k in both]
    nu = [off(2 * channels + 4) * sum(a[j, k] * p[k] for k in both) for j in neurons]
    if kind != "own factors":
        first, second = (
            part.double().abs() for part in net.recurrent.factors() or (net.recurrent.matrix(), torch.eye(n))
        )
        w, s = first @ second.T, activity + ex
        nu = [
            nu[j] + off(n + 64) * sum(w[j, i] * s[i] for i in neurons) + there(basis.dropped) * s.norm()
            for j in neurons
        ]
    dh = [f[j] * nu[j] + (off(8) / leak * h[j] if leak < 1 else 0) for j in neurons]
    s = [h[j] + dh[j] + ex[j] for j in neurons]
    ds = [off(channels + 4) * s[j] for j in neurons]
    dp = [off(n) * sum(b[i, k] * (s[i] + ds[i]) for i in neurons) for k in both]
    seen = [sum(gauge[k, c] * sum(m[j, c] * s[j] for j in neurons) for c in both) for k in both]
    own = [10 * channels * 2.0**-53 * sum(inverse[c, k] * seen[k] for k in both) for c in both]
    currents = [
        sum(m[j, c] * (dh[j] + ds[j]) for j in neurons) + sum(inverse[c, k] * dp[k] for k in both) + own[c]
        for c in both
    ]
    outputs = [sum(d[j, c] * (dh[j] + off(n + 4) * (h[j] + dh[j])) for j in neurons) for c in both]
    torch.testing.assert_close(found, torch.tensor([*currents, *outputs], dtype=torch.float64), rtol=1e-12, atol=0)
