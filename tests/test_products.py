"""Products by oneDNN are those of torch, on any processor: float32, to rounding, wherever their arrays lie."""

import os
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch.autograd import forward_ad

from rni import Specification, run
from rni.core import matmul as products
from rni.core.matmul import add_product_, product
from rni.weights import Dense

N = 1100  # columns: larger than what is added at a time
HAS_ONEDNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
pytestmark = pytest.mark.skipif(not HAS_ONEDNN, reason="this build of torch has no oneDNN")


@pytest.fixture
def calls(monkeypatch):
    """Without gradients, products go to oneDNN as on a processor with AVX-512, and are counted."""
    counted, own = [], products._onednn
    monkeypatch.setattr(products, "_AVAILABLE", True)
    monkeypatch.setattr(products, "_onednn", lambda left, right: counted.append(1) or own(left, right))
    with torch.no_grad():
        yield counted


def random(*shape, seed=0, **options):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), **options)


def error(value, exact):
    return float((value.double() - exact).norm() / exact.norm())


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (random(16, N), random(N, N, seed=1)),
        (random(16, N), random(N, N, seed=1).T),
        (random(20, N).T, random(20, N, seed=1)),
        (random(20, N).T, random(N, 20, seed=1).T),
        (random(32, 2 * N)[:, ::2], random(2 * N, N, seed=1)[::2]),
    ],
)
def test_a_large_product_is_right_in_any_order_of_memory(calls, left, right):
    exact, start = left.double() @ right.double(), random(left.shape[0], right.shape[1], seed=2)
    assert error(product(left, right), exact) < 3e-6
    out = torch.empty_like(start)
    assert product(left, right, out=out) is out
    assert error(out, exact) < 3e-6
    total = start.clone()
    assert add_product_(total, left, right, -0.5) is total
    assert error(total, start.double() - 0.5 * exact) < 3e-6
    assert len(calls) >= 3


def test_what_is_added_in_parts_is_all_of_it(calls):
    left, right, total = random(24, 3 * N).T, random(24, N, seed=1), random(3 * N, N, seed=2)
    expected = total.double() + left.double() @ right.double()
    assert error(add_product_(total, left, right), expected) < 3e-6
    assert len(calls) > 1


def test_the_bits_do_not_hang_on_where_arrays_lie_in_memory(calls):
    w, h = random(1000, 1000), random(17, 1000, seed=1)

    def placed(values, offset):
        return torch.empty(values.numel() + 16)[offset : offset + values.numel()].view(values.shape).copy_(values)

    def three(*offsets):
        own, states = placed(w, offsets[0]), placed(h, offsets[1])
        return torch.cat([product(states, own.T), product(states, own), add_product_(own, states.T, states, 0.1)])

    first = three(0, 0)
    assert all(torch.equal(three(k, (5 * k) % 16), first) for k in range(1, 16))
    assert calls


def test_small_products_and_those_of_other_numbers_are_left_to_torch(calls):
    for left, right in (
        (random(4, 100), random(100, 100)),
        (random(8, N).T, random(8, N)),  # large, of few terms
        (random(32, N).double(), random(N, N).double()),
    ):
        assert torch.equal(product(left, right), left @ right)
    assert not calls


def test_what_does_not_fit_is_refused_as_by_torch_and_leaves_all_as_it_was(calls):
    w, h = random(N, N), random(32, N, seed=1)
    for total in (random(1, N), random(31, N), random(32, N).double(), random(1, 32, N)):
        before = total.clone()
        with pytest.raises(RuntimeError):
            add_product_(total, h, w)
        assert torch.equal(total, before)
    for left in (h[:, 1:], h[0], h[None]):
        with pytest.raises(RuntimeError):
            product(left, w)
    assert not calls


def test_products_are_converted_as_torch_is_told_to(calls):
    with torch.autocast("cpu", torch.bfloat16):
        assert product(random(32, N), random(N, N)).dtype == torch.bfloat16
    assert not calls


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch's own, where it needs it
def test_a_product_within_two_derivatives_has_both(calls):
    w, h, one = random(N, N), random(32, N, seed=1), torch.tensor(1.0)

    def scaled(states):
        return torch.func.jvp(lambda s: product(states, w) * s, (one,), (one,))[1]

    for value in torch.func.jvp(scaled, (h,), (h,)):
        assert torch.equal(value, h @ w)
    assert torch.equal(torch.vmap(lambda states: product(states, w))(h[None])[0], h @ w)
    assert not calls


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_a_product_of_dual_numbers_has_its_tangent(calls):
    w, h, along = random(N, N), random(32, N, seed=1), random(32, N, seed=2)
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(product(forward_ad.make_dual(h, along), w)).tangent
        assert tangent is not None
        assert torch.equal(tangent, along @ w)
    assert not calls


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace:DeprecationWarning")  # in favour of what ends at the same place
def test_products_can_be_recorded(calls):
    w, h = random(N, N), random(32, N, seed=1)
    recorded: Any = torch.jit.trace(lambda states: product(states, w), h, check_trace=False)
    assert torch.equal(recorded(2 * h), 2 * h @ w)
    assert not calls


def test_products_can_be_differentiated(calls):
    w, h = Dense(random(N, N)), random(32, N, seed=1)
    with torch.enable_grad():
        (w(h).square().sum() + w.pull_back(h).square().sum()).backward()
    slope = w.value.grad
    assert slope is not None
    assert error(slope, 2 * ((h @ w.value.T).T @ h + h.T @ (h @ w.value)).double()) < 1e-5
    assert not calls


@pytest.mark.parametrize(
    "training",
    [
        {"steps": 30, "batch": 128},
        {"steps": 30, "batch": 128, "optimizer": "adam", "train": "recurrent+decoders"},
        {"steps": 30, "loss": "proxy", "optimizer": "adam", "sampling": "folded", "points": 256},
    ],
)
def test_a_training_takes_them_and_goes_the_same_way(calls, monkeypatch, training):
    raw = {"task": {"decays": [0.9, 0.8]}, "network": {"neurons": 300}, "training": training}
    with torch.enable_grad():  # as it is outside of trainings
        by_onednn = run(Specification.parse(raw)).losses
        assert len(calls) >= 3 * 30  # forward, back, and what W moves by
        monkeypatch.setattr(products, "_AVAILABLE", False)
        assert run(Specification.parse(raw)).losses == pytest.approx(by_onednn, rel=1e-2)


def test_mkl_is_left_alone_where_it_is_asked_for_the_bits_of_other_processors():
    code = "import sys, rni.products; sys.exit(rni.products._AVAILABLE)"
    assert subprocess.run([sys.executable, "-c", code], env=os.environ | {"MKL_CBWR": "COMPATIBLE"}).returncode == 0
