"""Closed forms for linear networks (section 3 of the paper and its appendices), as pure functions on arrays.

The package also contains the Hessian of the ReLU proxy loss and the capacity of linear and ReLU networks. The names are
imported when they are first used. The moments are in the module `rni.theory.moments`.
"""

from importlib import import_module
from typing import Any

_NAMES = {
    "averaged": (
        "LinearProblem",
        "averaged_gradient",
        "averaged_hessian",
        "averaged_hessian_product",
        "averaged_loss",
        "linear_problem",
        "moment_jacobian",
    ),
    "capacity": ("largest_channels", "least_neurons", "untuned_error", "wendel"),
    "channels": ("ChannelResiduals", "Factors", "channel_residuals", "multiplexed"),
    "conditions": ("IntegratorReport", "Mode", "g_coefficients", "is_generalizing_integrator"),
    "convergence": (
        "Advice",
        "Convergence",
        "advise",
        "condition_number",
        "fastest_convergence",
        "hessian_spectrum",
        "recipe_cosine",
    ),
    "duration": ("LinearNetwork", "short_sighted_network", "shortest_guaranteed_duration"),
    "manifolds": (
        "Plane",
        "beta_of_scale",
        "g_1",
        "g_2",
        "gamma_matrix",
        "intersection",
        "plane",
        "plane_of",
        "rank_one",
        "singular_angles",
        "undriven_mode",
        "unread_mode",
        "vertical_null_mode",
        "vertical_state",
    ),
    "perturbation": ("expected_perturbation", "moment_perturbation", "random_bulk"),
    "proxy": ("ProxyHessian", "proxy_hessian"),
    "special_cases": ("OneStepDescent", "SameVectorsDescent"),
    "subspace": ("null_basis", "reduced_problem", "to_omega", "to_weights"),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value  # so that the next access does not call this function
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
