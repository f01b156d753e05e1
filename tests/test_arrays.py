"""Checks of arrays: which numbers and shapes they accept, and which field, value and problem their errors name."""

import numpy as np
import pytest
import torch

from rni import InputError
from rni.core.arrays import (
    as_columns,
    as_matrix,
    as_real_tensor,
    as_row,
    as_vector_pair,
    require_finite,
    require_independent_columns,
    require_shape,
    require_squarable,
)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2], torch.float64),
        ([1.0, 2.0], torch.float64),
        (np.array([1, 2], dtype=np.int8), torch.float64),
        (np.array([1, 2], dtype=np.float16), torch.float32),
        (np.array([2.0, 1.0])[::-1], torch.float64),
        (np.diagonal(np.diag([1.0, 2.0])), torch.float64),  # read-only
        (torch.tensor([1, 2]), torch.float64),
        (torch.tensor([1, 2], dtype=torch.bfloat16), torch.float32),
        (torch.tensor([1.0, 2.0], requires_grad=True), torch.float32),
    ],
)
def test_real_numbers_of_any_kind_become_a_tensor(values, dtype):
    tensor = as_real_tensor("x", values)
    assert tensor.dtype == dtype
    assert tensor.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("values", "value"),
    [
        ("1", "str"),
        (None, "NoneType"),
        ([[1.0], [1.0, 2.0]], "list"),
        ([1j], "list"),
        (np.array([1j]), "complex128"),
        (torch.tensor([1j]), "torch.complex64"),
    ],
)
def test_other_values_are_refused(values, value):
    with pytest.raises(InputError) as error:
        as_real_tensor("x", values)
    assert (error.value.field, error.value.value) == ("x", value)


@pytest.mark.parametrize("values", [torch.eye(2).to_sparse(), torch.empty(2, device="meta")])
def test_tensors_without_plain_data_are_refused(values):
    with pytest.raises(InputError):
        as_real_tensor("x", values)


@pytest.mark.parametrize("shape", [("a", "a"), (3, "b"), ("...", 3), ("...", "a", 3), ("a", "b")])
def test_shapes_with_names_and_numbers(shape):
    require_shape("x", torch.zeros(3, 3), *shape)


@pytest.mark.parametrize(
    ("lengths", "shape", "allowed"),
    [
        ((3, 2), ("a", "a"), "(a, a)"),
        ((3, 0), ("a", "b"), "(a, b)"),
        ((3,), ("a", "b"), "(a, b)"),
        ((3, 2), (3,), "(3,)"),
        ((4, 3), ("...", 2), "(..., 2)"),
        ((3,), ("...", "a", 3), "(..., a, 3)"),
    ],
)
def test_other_shapes_are_refused(lengths, shape, allowed):
    with pytest.raises(InputError) as error:
        require_shape("x", np.zeros(lengths), *shape)
    assert (error.value.field, error.value.value, error.value.allowed) == ("x", lengths, allowed)


def test_arrays_of_networks_are_float64_and_one_value_stands_for_all_channels():
    e, d = as_vector_pair([1.0, 2.0], torch.ones(2, 1))
    assert e.shape == d.shape == (2, 1)
    assert as_columns("e", np.ones((2, 3), dtype=np.float32), 2).dtype == torch.float64
    assert as_matrix("w", [[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert as_row("decays", 0.5, 3).tolist() == [0.5] * 3


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: as_matrix("w", np.ones((2, 2)), 3), "w"),
        (lambda: as_matrix("w", [[np.nan]]), "w"),
        (lambda: as_columns("e", np.ones((2, 2)), 3), "e"),
        (lambda: as_vector_pair(np.ones((2, 2)), np.ones((2, 1))), "decoders"),
        (lambda: as_row("decays", [1.0, 2.0], 3), "decays"),
        (lambda: require_finite("x", torch.tensor([1.0, torch.inf])), "x"),
        (lambda: require_independent_columns("x", torch.ones(3, 2)), "x"),
        (lambda: require_squarable("x", torch.tensor([1e-120], dtype=torch.float64)), "x"),
    ],
)
def test_errors_name_the_field(call, field):
    with pytest.raises(InputError) as error:
        call()
    assert error.value.field == field


def test_the_graph_of_a_tensor_is_kept():
    w = torch.eye(2, requires_grad=True)
    as_matrix("w", w).sum().backward()
    assert w.grad is not None
