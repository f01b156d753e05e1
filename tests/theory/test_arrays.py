"""What the public functions of the theory say to arrays that they can't use."""

import ast
from pathlib import Path

import numpy as np
import pytest
import torch

import rni.theory
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
def test_any_kind_of_array_is_taken_and_any_wrong_shape_is_refused(name):
    function = TAKING_W[name]
    for kind in (W, W.astype(np.float32), torch.tensor(W), W.tolist(), W[::-1, ::-1]):
        function(kind)
    for wrong in (W[:3], W[0], W[:0, :0], np.full((4, 4), np.nan), "W", [[1.0, 2.0], [3.0]], 1j * W, None):
        with pytest.raises(InputError, match=r"recurrent: .*; allowed: "):
            function(wrong)


@pytest.mark.parametrize(
    "call",
    [
        lambda: theory.linear_problem(E, D, 0.9, 1.0, 0),
        lambda: theory.linear_problem(E, D, 0.9, 1.0, -1),
        lambda: theory.linear_problem(E, D[:3], 0.9, 1.0, 3),
        lambda: theory.linear_problem(E, D, 0.9, np.nan, 3),
        lambda: theory.linear_problem(E, D, 0.9, 1.0, 3, [[1.0, 2.0], [3.0, 4.0]]),
        lambda: theory.linear_problem(E, D, 0.9, 1.0, 2, [[1e-12, 1e-12], [0.0, 1e-12]]),
        lambda: theory.multiplexed(E, D[:2], 0.9, 1.0),
        lambda: theory.multiplexed(E, D, 0.0, 1.0),
        lambda: theory.channel_residuals(1.0, E, D[:2], E, D, 0.9, 1.0),
        lambda: theory.short_sighted_network(0, 0.9, 1.0),
        lambda: theory.short_sighted_network(3, 0.0, 1.0),
        lambda: theory.moment_perturbation(W, W, E, D, 0),
        lambda: theory.expected_perturbation(W, E, D, 0.1, -2),
        lambda: theory.random_bulk(0, 0.5, torch.Generator()),
        lambda: theory.null_basis(E, D[:2]),
        lambda: theory.to_weights(W, BASIS),
        lambda: theory.reduced_problem(PROBLEM, BASIS[:3]),
        lambda: theory.plane_of(E, D[:3]),
        lambda: theory.plane_of(0 * E, D),
        lambda: theory.plane(float("nan"), 1.0, 0.0),
        lambda: theory.SameVectorsDescent(1.0, 0.9, 0.0, 3).stability_limit,
        lambda: theory.SameVectorsDescent(1.0, 0.9, 1.0, 0).roots,
        lambda: theory.OneStepDescent(0.0, 1.0, 0.0, 0.9, 1.0).stability_limit,
    ],
)
def test_values_without_a_meaning_are_refused_in_one_line(call):
    with pytest.raises(InputError, match=r"^[^\n]*$"):
        call()


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


def test_theory_imports_nothing_of_ours_but_the_errors():
    folder = Path(rni.theory.__file__).parent
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in folder.glob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    modules = [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    ours = {module for module in modules if module.startswith("rni") and not module.startswith("rni.theory")}
    assert ours == {"rni.core.errors"}
