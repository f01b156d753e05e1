import math

import numpy as np
import pytest
import torch
from told import of
from torch import Tensor

from rni.losses import AveragedLoss, ProxyLoss
from rni.networks.network import Network
from rni.papers.fanthomme2021.errata import ERRATA
from rni.papers.fanthomme2021.figures import fig6, fig15
from rni.papers.fanthomme2021.figures.table1 import PAPER
from rni.tasks.integration import Integration
from rni.theory.averaged import averaged_gradient, averaged_hessian, averaged_loss, linear_problem, moment_jacobian
from rni.theory.channels import channel_residuals, multiplexed
from rni.theory.conditions import is_generalizing_integrator
from rni.theory.convergence import fastest_convergence, recipe_cosine
from rni.theory.manifolds import beta_of_scale, gamma_matrix, intersection, plane, plane_of, rank_one
from rni.theory.special_cases import SameVectorsDescent
from rni.training import train
from rni.training.reduced import descend_together
from rni.weights import random_matrix
from rni.weights.vectors import independent

RNG = np.random.default_rng(0)
DECAY, OTHER = 0.9, 0.35
SPACE = plane(1.2, 0.8, 0.3)


def integrates(omega, scale, space=SPACE):
    return bool(is_generalizing_integrator(omega, space.encoder, space.decoder, DECAY, scale))


def test_each_erratum_has_its_test_and_its_own_name():
    assert len({erratum.id for erratum in ERRATA}) == len(ERRATA)
    for erratum in ERRATA:
        assert f"test_{erratum.id}" in globals()
        assert erratum.printed != erratum.corrected


def test_order_of_vectors():
    e, d = RNG.normal(size=(2, 20))
    alpha, beta = 0.7, -1.3

    def root_and_basis(first, second):
        vectors = np.stack([first, second], axis=1)
        values, rotation = np.linalg.eigh(vectors.T @ vectors)
        return rotation * values**0.5 @ rotation.T, vectors @ (rotation * values**-0.5 @ rotation.T)

    def misses(first, second):
        root, basis = root_and_basis(first, second)
        omega = gamma_matrix(DECAY, OTHER, alpha, beta).numpy()
        recurrent = basis @ omega @ basis.T
        moment = np.abs((root @ omega @ omega @ root)[0, 1] - d @ recurrent @ recurrent @ e)
        space = plane_of(e, d)
        weight = space.z * (alpha - space.alpha_0) * (beta - space.beta_0) / (beta - alpha)
        found = is_generalizing_integrator(recurrent, e, d, DECAY, 1.0).modes
        return moment, min(abs(mode.weights.item() - weight) for mode in found)

    assert max(misses(d, e)) < 1e-10
    assert min(misses(e, d)) > 1e-2


def test_multiplexing_capacity():
    decays, scales = np.array([0.9, 0.7, 0.5]), np.array([1.0, 2.0, 1.5])
    e, d = RNG.normal(size=(2, 3, 3))

    def only_candidate(decoders):
        return np.linalg.inv(decoders.T) @ np.diag(scales * decays) @ np.linalg.inv(e)

    def second_moment_error(decoders):
        recurrent = only_candidate(decoders)
        found = decoders.T @ recurrent @ recurrent @ e
        return np.abs(found - np.diag(scales * decays**2)).max()

    assert second_moment_error(d) > 0.1
    dual = np.linalg.inv(e).T * scales
    assert second_moment_error(dual) < 1e-10
    # between D and 2 D neurons: a network's moments from q = 0 on have a Hankel matrix of rank n at most
    e, d = RNG.normal(size=(2, 5, 3))
    wanted = [d.T @ e] + [np.diag(scales * decays**q) for q in range(1, 12)]
    hankel = np.block([[wanted[i + j] for j in range(6)] for i in range(6)])
    assert np.linalg.matrix_rank(hankel, tol=1e-10) == 3 + np.linalg.matrix_rank(d.T @ e - np.diag(scales)) == 6 > 5
    e, d = RNG.normal(size=(2, 6, 3))
    left, right = multiplexed(e, d, decays, scales)
    assert is_generalizing_integrator(left @ right.T, e, d, decays, scales)


def same_vectors(duration=3):
    e = RNG.normal(size=8) * 0.4
    scale = float(e @ e)
    solution = SameVectorsDescent(math.sqrt(scale), DECAY, scale, duration)
    return e, solution, linear_problem(e, e, DECAY, scale, duration)


def test_same_vectors_sign():
    e, solution, problem = same_vectors()
    for w in (0.1, 1.5):
        step = -averaged_gradient(w * np.outer(e, e), problem).numpy()
        np.testing.assert_allclose(step, -solution.polynomial(w) * np.outer(e, e), atol=1e-12)
        assert np.abs(step - solution.polynomial(w) * np.outer(e, e)).max() > 1e-3
    assert solution.polynomial.deriv()(solution.roots[0]) > 0


@pytest.mark.parametrize("duration", [1, 3])
def test_same_vectors_stability(duration):
    e, solution, problem = same_vectors(duration)
    fixed = solution.roots[0] * np.outer(e, e)
    printed_limit = 1 / solution.polynomial.deriv()(solution.roots[0])

    def converges(rate):
        recurrent = torch.as_tensor(1.001 * fixed)
        for _ in range(400):
            recurrent = recurrent - rate * averaged_gradient(recurrent, problem)
        return np.abs(recurrent.numpy() - fixed).max() < 1e-9

    assert converges(1.9 * printed_limit)
    assert not converges(2.1 * printed_limit)


def test_special_scale():
    for omega in (gamma_matrix(DECAY, OTHER, 0.4, SPACE.alpha_0), gamma_matrix(DECAY, OTHER, SPACE.beta_0, 0.4)):
        assert integrates(omega, SPACE.overlap)
        assert not integrates(omega, SPACE.overlap / DECAY)


def test_special_case_matrix():
    slope = 0.7
    modal = np.array([[0, 1], [1, slope]])
    product = modal @ np.diag([DECAY, OTHER]) @ np.linalg.inv(modal)
    np.testing.assert_allclose(product, [[OTHER, 0], [(OTHER - DECAY) * slope, DECAY]], atol=1e-12)
    assert np.abs(product - [[OTHER, 0], [(DECAY - OTHER) * slope, DECAY]]).max() > 0.1


def test_rank_two_manifold_entry():
    beta, alpha_0, beta_0 = 0.4, SPACE.alpha_0, SPACE.beta_0

    def manifold(corner):
        rows = [
            [beta * DECAY - beta_0 * OTHER, OTHER - DECAY],
            [beta * beta_0 * (DECAY - OTHER), beta * OTHER - corner * DECAY],
        ]
        return np.array(rows) / (beta - beta_0)

    np.testing.assert_allclose(np.sort(np.linalg.eigvals(manifold(beta_0))), [OTHER, DECAY])
    assert integrates(manifold(beta_0), SPACE.overlap)
    assert not integrates(manifold(alpha_0), SPACE.overlap)


def minimum():
    problem = linear_problem(SPACE.encoder, SPACE.decoder, DECAY, 1.1, 3)
    return rank_one(SPACE, DECAY, 1.1, 1.0), problem


def test_lowrank_hessian_factor():
    omega, problem = minimum()
    exact = of(Tensor, torch.autograd.functional.hessian(lambda w: averaged_loss(w, problem), omega))
    jacobian = moment_jacobian(omega, problem)
    printed = torch.einsum("qapb,qcaij,pcbkl->ijkl", problem.chi, jacobian, jacobian)
    torch.testing.assert_close(2 * printed, exact)
    assert (printed - exact).abs().max() > 0.1


def test_taylor_factor():
    omega, problem = minimum()
    shift = 1e-5 * torch.tensor([[1.0, -2.0], [0.5, 1.0]], dtype=torch.float64)
    loss = averaged_loss(omega + shift, problem).item()
    quadratic = torch.einsum("ij,ijkl,kl->", shift, averaged_hessian(omega, problem), shift).item()
    assert loss == pytest.approx(quadratic / 2, rel=1e-3)
    assert loss != pytest.approx(quadratic, rel=0.1)


def test_overlap_recipe():
    e, d = RNG.normal(size=(2, 400_000))
    e, d = e / np.linalg.norm(e), d / np.linalg.norm(d)
    for mixture, cosine in ((0.1, 0.110), (0.4, 0.555), (0.8, 0.970)):
        mixed = mixture * e + (1 - mixture) * d
        measured = mixed @ e / np.linalg.norm(mixed)
        assert measured == pytest.approx(recipe_cosine(mixture), abs=5e-3)
        assert recipe_cosine(mixture) == pytest.approx(cosine, abs=1e-3)
        assert abs(measured - mixture) > 5e-3


def test_slow_direction():
    space = plane(1, 1, 0.6)
    scale, duration, rate = space.overlap, 3, 0.05
    decoder, encoder = space.decoder.numpy(), space.encoder.numpy()
    target = scale * DECAY ** np.arange(1, duration + 1)
    weight = np.arange(duration, 0, -1)
    through = intersection(space, DECAY, 0.0).numpy()
    along = intersection(space, DECAY, 1.0).numpy() - through
    along /= np.linalg.norm(along)

    omega, times, losses, distances = np.zeros((2, 2)), [], [], []
    for step in range(20_001):
        square = omega @ omega
        encoded = np.stack([encoder, omega @ encoder, square @ encoder])
        decoded = np.stack([decoder, omega.T @ decoder, square.T @ decoder])
        residual = np.array([decoded[1] @ encoder, decoded[2] @ encoder, decoded[2] @ encoded[1]]) - target
        if step in (200, 2_000, 20_000):
            apart = omega - through
            times.append(step)
            losses.append(weight @ residual**2)
            distances.append(np.linalg.norm(apart - (apart * along).sum() * along))
        slope = np.append(2 * weight * residual, [0, 0])
        omega = omega - rate * decoded.T @ slope[np.add.outer(np.arange(3), np.arange(3))] @ encoded
    loss_exponent = np.log(losses[-1] / losses[1]) / np.log(times[-1] / times[1])
    distance_exponent = np.log(distances[-1] / distances[1]) / np.log(times[-1] / times[1])
    assert loss_exponent == pytest.approx(-2, abs=0.1)
    assert distance_exponent == pytest.approx(-0.5, abs=0.03)

    # along every null direction at the intersection the loss has no term below the fourth order
    problem = linear_problem(encoder, decoder, DECAY, scale, duration)
    crossing = intersection(space, DECAY, OTHER)
    values, directions = torch.linalg.eigh(averaged_hessian(crossing, problem).reshape(4, 4))
    assert (values[:3].abs() < 1e-10).all()
    mixed = directions[:, :3].sum(1).reshape(2, 2)
    ratio = averaged_loss(crossing + 2e-2 * mixed, problem) / averaged_loss(crossing + 1e-2 * mixed, problem)
    assert ratio.item() == pytest.approx(16, rel=0.2)


# The proxy loss: L = sum over +- of (d.f(+-We) -+ s gamma)^2 + |W f(+-We) -+ gamma W e|^2, f = R, the rectifier.

NEURONS, SCALE = 5, 1.4


def proxy_setting():
    generator = torch.Generator().manual_seed(3)
    e, d = torch.randn(2, NEURONS, dtype=torch.float64, generator=generator)
    return torch.randn(NEURONS, NEURONS, dtype=torch.float64, generator=generator), e, d


def proxy_loss(recurrent, e, d, rectifier=torch.relu):
    loss = torch.zeros((), dtype=torch.float64)
    for sign in (1, -1):
        activity = rectifier(sign * recurrent @ e)
        loss = loss + (d @ activity - sign * SCALE * DECAY) ** 2
        loss = loss + (recurrent @ activity - sign * DECAY * recurrent @ e).square().sum()
    return loss


def relu_parts(recurrent, e, sign):
    """u = R(+-We) -+ gamma e, v = W u, Heaviside(+-We)."""
    current = sign * recurrent @ e
    u = current.relu() - sign * DECAY * e
    return u, recurrent @ u, (current > 0).double()


def with_swap(term):
    return term + term.permute(2, 3, 0, 1)


def proxy_hessian_half(recurrent, e, d, **printed):
    """Half the Hessian of the proxy loss with the rectifier, lines 1 to 5; `printed` replaces one line."""
    identity = torch.eye(NEURONS, dtype=torch.float64)
    u, v, step = zip(*(relu_parts(recurrent, e, sign) for sign in (1, -1)), strict=True)
    signs = (1, -1)
    both = sum(torch.outer(h, h) for h in step)
    lines = {
        "first": torch.einsum("i,j,k,l,ik->ijkl", d, e, d, e, both),
        "second": torch.einsum("j,l,ai,ak,ik->ijkl", e, e, recurrent, recurrent, both),
        "third": torch.einsum("ik,jl->ijkl", identity, sum(torch.outer(x, x) for x in u)),
        "fourth": sum(
            s * with_swap(torch.einsum("jk,i,l,k->ijkl", identity, v[c], e, step[c])) for c, s in enumerate(signs)
        ),
        "fifth": sum(
            s * with_swap(torch.einsum("ik,j,l,k->ijkl", recurrent, u[c], e, step[c])) for c, s in enumerate(signs)
        ),
    }
    return sum((lines | printed).values())


def autograd_hessian_half(recurrent, e, d, rectifier=torch.relu):
    return of(Tensor, torch.autograd.functional.hessian(lambda w: proxy_loss(w, e, d, rectifier), recurrent)) / 2


def test_proxy_gradient():
    recurrent, e, d = proxy_setting()
    exact = torch.func.grad(proxy_loss)(recurrent, e, d)

    def gradient(offset):
        total = torch.zeros_like(recurrent)
        for sign in (1, -1):
            _, v, step = relu_parts(recurrent, e, sign)
            activity = (sign * recurrent @ e).relu()
            total += 2 * (d @ activity - sign * SCALE * DECAY) * sign * torch.outer(d * step, e)
            total += 2 * torch.outer(v, activity - sign * offset)
            total += sign * 2 * torch.outer(step * (recurrent.T @ v), e)
        return total

    torch.testing.assert_close(gradient(DECAY * e), exact)
    assert (gradient(SCALE * DECAY * torch.ones(NEURONS)) - exact).abs().max() > 0.1


def test_proxy_hessian_index():
    recurrent, e, d = proxy_setting()
    exact = autograd_hessian_half(recurrent, e, d)
    identity = torch.eye(NEURONS, dtype=torch.float64)

    def with_index(index, heaviside=True):
        total = torch.zeros_like(exact)
        for sign in (1, -1):
            _, v, step = relu_parts(recurrent, e, sign)
            factor = step if heaviside else torch.ones_like(step)
            total += sign * with_swap(torch.einsum(f"jk,i,l,{index}->ijkl", identity, v, e, factor))
        return proxy_hessian_half(recurrent, e, d, fourth=total)

    torch.testing.assert_close(with_index("k"), exact)
    for wrong in (with_index("i"), with_index("l"), with_index("k", heaviside=False)):
        assert (wrong - exact).abs().max() > 0.1


def test_proxy_hessian_repeated_index():
    recurrent, e, d = proxy_setting()
    exact = autograd_hessian_half(recurrent, e, d)
    identity = torch.eye(NEURONS, dtype=torch.float64)
    (plus, _, _), (minus, _, _) = (relu_parts(recurrent, e, sign) for sign in (1, -1))
    columns = torch.outer(plus, plus) + (minus * minus)[:, None]
    printed = torch.einsum("ik,jl->ijkl", identity, columns)
    torch.testing.assert_close(proxy_hessian_half(recurrent, e, d), exact)
    assert (proxy_hessian_half(recurrent, e, d, third=printed) - exact).abs().max() > 0.1
    assert (printed - printed.permute(2, 3, 0, 1)).abs().max() > 0.1


def printed_fourth_and_fifth(recurrent, e):
    identity = torch.eye(NEURONS, dtype=torch.float64)
    once = recurrent @ e
    fourth = torch.einsum("jk,i,l->ijkl", identity, recurrent @ once - 2 * DECAY * once, e)
    fifth = torch.einsum("ik,j,l->ijkl", recurrent, once - 2 * DECAY * e, e)
    return {"fourth": with_swap(fourth), "fifth": with_swap(fifth)}


def test_proxy_hessian_heaviside():
    recurrent, e, d = proxy_setting()
    exact = autograd_hessian_half(recurrent, e, d)
    torch.testing.assert_close(proxy_hessian_half(recurrent, e, d), exact)
    for name, term in printed_fourth_and_fifth(recurrent, e).items():
        assert (proxy_hessian_half(recurrent, e, d, **{name: term}) - exact).abs().max() > 0.1

    # an exact integrator of rank 1: W = sigma l r' with sigma r.R(+-l) = +-gamma
    left, reader = torch.tensor([1.0, -1, 2, -2, 1]).double(), torch.tensor([0.3, -0.2, 0.1, -0.4, 0.2]).double()
    positive, negative = reader @ left.relu(), -(reader @ (-left).relu())
    reader = torch.where(left > 0, DECAY * reader / positive, DECAY * reader / negative)
    recurrent = torch.outer(left, reader)
    for sign in (1, -1):
        assert relu_parts(recurrent, e, sign)[1].abs().max() < 1e-12
    exact = autograd_hessian_half(recurrent, e, d)
    torch.testing.assert_close(proxy_hessian_half(recurrent, e, d), exact)
    lines = printed_fourth_and_fifth(recurrent, e)
    torch.testing.assert_close(proxy_hessian_half(recurrent, e, d, fourth=lines["fourth"]), exact)
    assert (proxy_hessian_half(recurrent, e, d, fifth=lines["fifth"]) - exact).abs().max() > 0.1


def test_proxy_hessian_extra_factor():
    recurrent, e, d = proxy_setting()
    sharpness = 2.0

    def rectifier(x):
        return torch.nn.functional.softplus(x, beta=sharpness)

    exact = autograd_hessian_half(recurrent, e, d, rectifier)
    current = recurrent @ e
    step = [torch.sigmoid(sharpness * sign * current) for sign in (1, -1)]
    bump = sharpness * step[0] * step[1]
    size = rectifier(current) + rectifier(-current)
    identity = torch.eye(NEURONS, dtype=torch.float64)
    u = [rectifier(sign * current) - sign * DECAY * e for sign in (1, -1)]
    both = sum(torch.outer(h, h) for h in step)
    smooth = torch.einsum("i,j,k,l,ik->ijkl", d, e, d, e, both)
    smooth = smooth + torch.einsum("j,l,ai,ak,ik->ijkl", e, e, recurrent, recurrent, both)
    smooth = smooth + torch.einsum("ik,jl->ijkl", identity, sum(torch.outer(x, x) for x in u))
    for c, sign in enumerate((1, -1)):
        smooth = smooth + sign * with_swap(torch.einsum("jk,i,l,k->ijkl", identity, recurrent @ u[c], e, step[c]))
        smooth = smooth + sign * with_swap(torch.einsum("ik,j,l,k->ijkl", recurrent, u[c], e, step[c]))
    smooth = smooth + torch.einsum("ik,i,j,l->ijkl", identity, d * (d @ size) * bump, e, e)
    last = torch.einsum("ik,i,j,l->ijkl", identity, (recurrent.T @ (recurrent @ size)) * bump, e, e)
    torch.testing.assert_close(smooth + last, exact)
    assert (smooth + (d @ size) * last - exact).abs().max() > 0.1


def test_relu_singular_value():
    d = torch.tensor([0.5, -0.5, 0.5, -0.5], dtype=torch.float64)
    recurrent = 2 * DECAY * torch.outer(d, d)
    sigma = torch.linalg.matrix_norm(recurrent, 2).item()
    state, integral = torch.zeros(4, dtype=torch.float64), 0.0
    for x in RNG.normal(size=200):
        state = torch.relu(recurrent @ (state + x * d))
        integral = DECAY * (integral + x)
        assert (d @ state).item() == pytest.approx(integral, abs=1e-12)
    assert sigma == pytest.approx(2 * DECAY * max(1, 1))
    assert sigma < 2 * max(1, 1)


def test_relu_left_overlap():
    d = torch.randn(2000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    d = d / d.norm()
    for sign in (1, -1):
        part = (sign * d).relu()
        assert (sign * d @ part).item() == pytest.approx(part.square().sum().item())
        assert part.square().sum().item() == pytest.approx(0.5, abs=0.05)
        assert (d * part).square().sum() < 0.01


def test_sigmoid_quotient():
    columns = {(loss, channels) for _, loss, channels in PAPER}
    quotients = [PAPER["sigmoid", *column][0] / PAPER["relu", *column][0] for column in columns]
    assert (min(quotients), max(quotients)) == (pytest.approx(1.975, abs=0.01), pytest.approx(25.7, abs=0.01))
    assert not all(2 <= quotient <= 10 for quotient in quotients)


def test_eigenmodes():
    decays, scales = np.array([0.9, 0.7]), np.array([1.0, 2.0])
    e, d = (torch.as_tensor(RNG.normal(size=(6, 2))) for _ in range(2))
    factors = multiplexed(e, d, decays, scales)
    w = factors.left @ factors.right.T
    values, writing = torch.linalg.eig(w)
    order = [int((values - decay).abs().argmin()) for decay in decays]
    writing, reading = writing[:, order].real, torch.linalg.pinv(writing).mH[:, order].real
    left, sigma, right = torch.linalg.svd(w)

    def largest(values, left, right):
        return max(r.abs().max().item() for r in channel_residuals(values, left, right, e, d, decays, scales))

    assert largest(torch.as_tensor(decays), writing, reading) < 1e-10
    for order in ([0, 1], [1, 0]):
        assert largest(sigma[order], left[:, order], right.T[:, order]) > 1e-2


def test_order_one():
    space = plane(1, 1, 0.0)

    def slopes(scale):
        alpha = np.tan(fastest_convergence(space, 0.995, scale, 3).angle)
        return np.abs([alpha, beta_of_scale(space, scale, alpha)])

    assert 0.1 < slopes(1.0).min() < slopes(1.0).max() < 10
    assert slopes(0.01).min() > 50
    assert slopes(10.0).max() < 0.1


def test_three_steps_from_small_weights():
    e, d = independent(40, 1, torch.Generator().manual_seed(0))
    task = Integration([DECAY])

    def error_of_the_eigenvalue(radius):
        start = random_matrix(40, radius, torch.Generator().manual_seed(1))
        net = Network(task, e, d, start, "linear")
        train(net, AveragedLoss(task, 3), learning_rate=0.03, steps=3000, stop_loss=1e-20)
        return (torch.linalg.eigvals(net.recurrent.matrix().detach()) - DECAY).abs().min().item()

    errors = [error_of_the_eigenvalue(radius) for radius in (0.0, 0.01, 0.1)]
    assert errors[0] < 1e-8
    assert errors[2] / errors[1] == pytest.approx(100, rel=0.3)


def test_leaving_the_slow_manifold():
    space = plane(1, 1, fig15.recipe_cosine(fig15.OVERLAP))
    assert fig15.batch_noise(space, 300) < 1e-12
    vectors = space.encoder.numpy()[None], space.decoder.numpy()[None]
    options = {"duration": 3, "learning_rate": 1.9 * fig15.learning_rate(space, 3), "steps": 2000}
    omega = descend_together(np.zeros((1, 2, 2)), *vectors, fig15.DECAY, np.array([space.overlap]), **options).omega
    undriven, unread = fig15.coordinates(omega[0], space)
    assert undriven == pytest.approx(unread, rel=1e-9)
    assert abs(undriven) > 1e-2  # it is still on its way
    noisy = fig15.coordinates(omega[0] + 0.01 * RNG.normal(size=(2, 2)), space)
    assert noisy[0] != pytest.approx(noisy[1], rel=1e-2)


def test_sum_over_neurons():
    net = Network(Integration([0.8]), *independent(30, 1, torch.Generator().manual_seed(0)), torch.eye(30), "sigmoid")
    z = torch.linspace(-5, 5, 11)[:, None].to(net.dtype)
    with torch.no_grad():
        driven = net.recurrent(net.encoders.T)
        h = net.f(z @ driven)
        output, current = net.readout(h) - 0.8 * z, net.recurrent(h) - 0.8 * z @ driven
        authors = (output.square().sum(1) + current.square().mean(1)).mean()  # a mean over the neurons
        as_printed, as_trained = (ProxyLoss(net.task, current_weight=a).value(net, z) for a in (1, 1 / 30))
    assert as_trained.item() == pytest.approx(authors.item())
    assert as_printed.item() != pytest.approx(authors.item(), rel=0.1)


def test_losses_of_figure_6():
    caption = fig6.CAPTION
    assert "A, B: current and activity of two neurons against the integral (batch loss)" in caption
    assert "(proxy loss, all networks)" in caption
    assert "for both losses" in caption


def test_learning_rate_from_the_printed_hessian_is_at_the_edge_of_stability():
    space = plane(1, 1, 0.3)
    found = fastest_convergence(space, DECAY, 1.0, 3)
    problem = linear_problem(space.encoder, space.decoder, DECAY, 1.0, 3)
    jacobian = moment_jacobian(found.omega, problem)
    printed = torch.einsum("qapb,qcaij,pcbkl->ijkl", problem.chi, jacobian, jacobian).reshape(4, 4)
    assert 1 / torch.linalg.eigvalsh(printed).max().item() == pytest.approx(2 * found.learning_rate)
