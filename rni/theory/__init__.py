"""Closed forms for linear networks (section 3 of the paper and its appendices), as pure functions on arrays.

The package also contains the Hessian of the ReLU proxy loss and the capacity of linear and ReLU networks. The names are
imported when they are first used. The moments are in the module `rni.theory.moments`.
"""

from rni.core.lazy import lazy_names

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "rni.theory.averaged": (
            "LinearProblem",
            "averaged_gradient",
            "averaged_hessian",
            "averaged_hessian_product",
            "averaged_loss",
            "linear_problem",
            "moment_jacobian",
        ),
        "rni.theory.capacity": ("largest_channels", "least_neurons", "untuned_error", "wendel"),
        "rni.theory.channels": ("ChannelResiduals", "Factors", "channel_residuals", "multiplexed"),
        "rni.theory.conditions": ("IntegratorReport", "Mode", "g_coefficients", "is_generalizing_integrator"),
        "rni.theory.convergence": (
            "Advice",
            "Convergence",
            "advise",
            "condition_number",
            "fastest_convergence",
            "hessian_spectrum",
            "recipe_cosine",
        ),
        "rni.theory.duration": ("LinearNetwork", "short_sighted_network", "shortest_guaranteed_duration"),
        "rni.theory.manifolds": (
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
        "rni.theory.perturbation": ("expected_perturbation", "moment_perturbation", "random_bulk"),
        "rni.theory.proxy": ("ProxyHessian", "proxy_hessian"),
        "rni.theory.special_cases": ("OneStepDescent", "SameVectorsDescent"),
        "rni.theory.subspace": ("null_basis", "reduced_problem", "to_omega", "to_weights"),
    },
)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
