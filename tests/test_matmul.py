"""Products by oneDNN agree with those of torch to rounding, and everything that is not a plain product is left to
torch.
"""

import os
import subprocess
import sys

import pytest
import torch
from told import train_run
from torch.autograd import forward_ad

from rni import run
from rni.core import matmul
from rni.core.matmul import add_product_, product

N = 1100  # columns: more than what is added at a time
HAS_ONEDNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
pytestmark = pytest.mark.skipif(not HAS_ONEDNN, reason="this build of torch has no oneDNN")


@pytest.fixture
def calls(monkeypatch):
    """Use oneDNN as on a processor with AVX-512, and count its calls."""
    counted, own = [], matmul._onednn
    monkeypatch.setattr(matmul, "_AVAILABLE", True)
    monkeypatch.setattr(matmul, "_onednn", lambda left, right: counted.append(1) or own(left, right))
    with torch.no_grad():
        yield counted


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def error(value, exact):
    return float((value.double() - exact).norm() / exact.norm())


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (random(16, N), random(N, N, seed=1)),
        (random(16, N), random(N, N, seed=1).T),
        (random(24, 3 * N).T, random(24, N, seed=1)),  # added in several parts
        (random(32, 2 * N)[:, ::2], random(2 * N, N, seed=1)[::2]),
    ],
)
def test_large_products_are_those_of_torch_to_rounding(calls, left, right):
    exact, start = left.double() @ right.double(), random(left.shape[0], right.shape[1], seed=2)
    assert error(product(left, right), exact) < 3e-6
    out = torch.empty_like(start)
    assert product(left, right, out=out) is out
    assert error(out, exact) < 3e-6
    total = start.clone()
    assert add_product_(total, left, right, -0.5) is total
    assert error(total, start.double() - 0.5 * exact) < 3e-6
    assert len(calls) >= 3


def test_bits_do_not_depend_on_the_addresses_of_arrays(calls):
    w, h = random(1000, 1000), random(17, 1000, seed=1)

    def shifted(values, offset):
        return torch.empty(values.numel() + 16)[offset : offset + values.numel()].view(values.shape).copy_(values)

    def products(w_offset, h_offset):
        own, states = shifted(w, w_offset), shifted(h, h_offset)
        return torch.cat([product(states, own.T), product(states, own), add_product_(own, states.T, states, 0.1)])

    first = products(0, 0)
    assert all(torch.equal(products(k, (5 * k) % 16), first) for k in range(1, 16))
    assert calls


def test_small_products_and_other_dtypes_are_left_to_torch(calls):
    for left, right in (
        (random(4, 100), random(100, 100)),
        (random(8, N).T, random(8, N)),  # few terms
        (random(32, N).double(), random(N, N).double()),
    ):
        assert torch.equal(product(left, right), left @ right)
    assert not calls


def test_shapes_that_do_not_fit_raise_the_errors_of_torch_and_change_nothing(calls):
    w, h = random(N, N), random(32, N, seed=1)
    for total in (random(1, N), random(32, N).double(), random(1, 32, N)):
        before = total.clone()
        with pytest.raises(RuntimeError):
            add_product_(total, h, w)
        assert torch.equal(total, before)
    for left in (h[:, 1:], h[0], h[None]):
        with pytest.raises(RuntimeError):
            product(left, w)
    assert not calls


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.trace:DeprecationWarning")
def test_autograd_transforms_autocast_and_tracing_are_left_to_torch(calls):
    w, h, direction = random(N, N), random(32, N, seed=1), random(32, N, seed=2)
    value, tangent, *_ = torch.func.jvp(lambda states: product(states, w), (h,), (direction,))
    assert torch.equal(value, h @ w)
    assert torch.equal(tangent, direction @ w)
    assert torch.equal(torch.vmap(lambda states: product(states, w))(h[None])[0], h @ w)
    with forward_ad.dual_level():
        dual = forward_ad.unpack_dual(product(forward_ad.make_dual(h, direction), w)).tangent
        assert dual is not None
        assert torch.equal(dual, direction @ w)
    with torch.autocast("cpu", torch.bfloat16):
        assert product(h, w).dtype == torch.bfloat16
    traced = torch.jit.trace(lambda states: product(states, w), h, check_trace=False)
    assert torch.equal(traced(2 * h), 2 * h @ w)  # pyright: ignore[reportCallIssue]
    with torch.enable_grad():
        leaf = h.clone().requires_grad_()
        product(leaf, w).square().sum().backward()
    assert leaf.grad is not None
    assert error(leaf.grad, 2 * ((h @ w) @ w.T).double()) < 1e-5
    assert not calls


@pytest.mark.parametrize(
    "training",
    [
        {"steps": 30, "batch": 128},
        {"steps": 30, "loss": "proxy", "optimizer": "adam", "sampling": "folded", "points": 256},
    ],
)
def test_a_training_uses_onednn_and_has_the_same_losses(calls, monkeypatch, training):
    raw = {"task": {"decays": [0.9, 0.8]}, "network": {"neurons": 300}, "training": training}
    with torch.enable_grad():  # as outside of trainings
        by_onednn = run(train_run(raw)).losses
        assert len(calls) >= 3 * 30  # forward, backward, and the step of W
        monkeypatch.setattr(matmul, "_AVAILABLE", False)
        assert run(train_run(raw)).losses == pytest.approx(by_onednn, rel=1e-2)


def test_onednn_is_not_used_if_mkl_has_to_give_the_bits_of_other_processors():
    code = "import sys, rni.core.matmul; sys.exit(rni.core.matmul._AVAILABLE)"
    assert subprocess.run([sys.executable, "-c", code], env=os.environ | {"MKL_CBWR": "COMPATIBLE"}).returncode == 0
