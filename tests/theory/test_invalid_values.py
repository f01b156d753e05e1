"""The arrays and numbers that the public functions of the theory accept and refuse."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

import rni.designs
from rni import InputError, theory

W, E, D = 0.5 * np.eye(4), np.eye(4)[:, :1], np.ones((4, 1))
PROBLEM = theory.linear_problem(E, D, 0.9, 1.0, 3)
BASIS = theory.null_basis(E, D)
TAKING_W = {
    "averaged_loss": lambda w: theory.averaged_loss(w, PROBLEM),
    "averaged_gradient": lambda w: theory.averaged_gradient(w, PROBLEM),
    "averaged_hessian": lambda w: theory.averaged_hessian(w, PROBLEM),
    "averaged_hessian_product": lambda w: theory.averaged_hessian_product(w, W, PROBLEM),
    "is_generalizing_integrator": lambda w: theory.is_generalizing_integrator(w, E, D, 0.9, 1.0),
    "g_coefficients": lambda w: theory.g_coefficients(w, E, D),
    "shortest_guaranteed_duration": theory.shortest_guaranteed_duration,
    "moment_perturbation": lambda w: theory.moment_perturbation(w, W, E, D, 3),
    "expected_perturbation": lambda w: theory.expected_perturbation(w, E, D, 0.1, 3),
    "proxy_hessian": lambda w: theory.proxy_hessian(w, E, D, 0.9),
    "to_omega": lambda w: theory.to_omega(w, BASIS),
}


@pytest.mark.parametrize("name", TAKING_W)
def test_arrays_of_any_kind_are_accepted_and_invalid_ones_refused(name):
    function = TAKING_W[name]
    for kind in (W, W.astype(np.float32), torch.tensor(W), W.tolist(), W[::-1, ::-1]):
        function(kind)
    for wrong in (W[:3], W[0], W[:0, :0], np.full((4, 4), np.nan), "W", [[1.0, 2.0], [3.0]], 1j * W, None):
        with pytest.raises(InputError) as error:
            function(wrong)
        assert error.value.field == "recurrent"


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("duration", lambda: theory.linear_problem(E, D, 0.9, 1.0, 0)),
        ("duration", lambda: theory.linear_problem(E, D, 0.9, 1.0, -1)),
        ("decoders", lambda: theory.linear_problem(E, D[:3], 0.9, 1.0, 3)),
        ("scales", lambda: theory.linear_problem(E, D, 0.9, np.nan, 3)),
        ("covariance", lambda: theory.linear_problem(E, D, 0.9, 1.0, 3, [[1.0, 2.0], [3.0, 4.0]])),
        ("covariance", lambda: theory.linear_problem(E, D, 0.9, 1.0, 2, [[1e-12, 1e-12], [0.0, 1e-12]])),
        ("decoders", lambda: theory.multiplexed(E, D[:2], 0.9, 1.0)),
        ("decays", lambda: theory.multiplexed(E, D, 0.0, 1.0)),
        ("right", lambda: theory.channel_residuals(1.0, E, D[:2], E, D, 0.9, 1.0)),
        ("duration", lambda: theory.short_sighted_network(0, 0.9, 1.0)),
        ("decay", lambda: theory.short_sighted_network(3, 0.0, 1.0)),
        ("duration", lambda: theory.moment_perturbation(W, W, E, D, 0)),
        ("duration", lambda: theory.expected_perturbation(W, E, D, 0.1, -2)),
        ("neurons", lambda: theory.random_bulk(0, 0.5, torch.Generator())),
        ("decoders", lambda: theory.null_basis(E, D[:2])),
        ("omega", lambda: theory.to_weights(W, BASIS)),
        ("basis", lambda: theory.reduced_problem(PROBLEM, BASIS[:3])),
        ("decoders", lambda: theory.plane_of(E, D[:3])),
        ("encoder_norm", lambda: theory.plane_of(0 * E, D)),
        ("encoder_norm", lambda: theory.plane(float("nan"), 1.0, 0.0)),
        ("decay", lambda: theory.SameVectorsDescent(1.0, 0.9, 0.0, 3).stability_limit),
        ("duration", lambda: theory.SameVectorsDescent(1.0, 0.9, 1.0, 0).roots),
        ("encoder_norm", lambda: theory.OneStepDescent(0.0, 1.0, 0.0, 0.9, 1.0).stability_limit),
    ],
)
def test_values_without_a_meaning_are_refused(field, call):
    with pytest.raises(InputError) as error:
        call()
    assert error.value.field == field


@pytest.mark.parametrize("package", [theory, rni.designs])
def test_the_stub_of_a_package_lists_its_public_names(package):
    stub = Path(package.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    assert sorted(re.findall(r" as (\w+)$", stub, re.MULTILINE)) == package.__all__


@pytest.mark.parametrize(
    "call",
    [
        lambda: theory.linear_problem(E, D, 1.0, 1.0, 1),
        lambda: theory.multiplexed(E, D, 1.0, 1.0),
        lambda: theory.short_sighted_network(1, 1.0, 1.0),
        lambda: theory.moment_perturbation(W, W, E, D, 1),
        lambda: theory.expected_perturbation(W, E, D, 1.0, 1),
        lambda: theory.random_bulk(1, 0.5, torch.Generator()),
        lambda: theory.SameVectorsDescent(1.0, 1.0, 1.0, 1).stability_limit,
        lambda: theory.SameVectorsDescent(1.0, 1.0, 1.0, 1).roots,
        lambda: theory.OneStepDescent(1.0, 1.0, 1.0, 1.0, 1.0).stability_limit,
        lambda: theory.fastest_convergence(theory.plane(1.0, 1.0, 0.5), 1.0, 1.0, 3),
        lambda: theory.least_neurons(1),
        lambda: theory.largest_channels(1),
        lambda: theory.wendel(1, 1),
        lambda: theory.untuned_error(1, 1),
    ],
)
def test_one_is_a_value_like_others(call):
    """Of steps, neurons, decays, scales and sizes 0 has no meaning; 1 has."""
    call()
