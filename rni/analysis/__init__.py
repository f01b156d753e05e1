"""Analysis of trained networks and of recordings: what they do, and how.

The public names are imported when they are first used, so that an analysis imports only what it needs.
"""

from typing import TYPE_CHECKING

from rni.core.lazy import lazy_names

if TYPE_CHECKING:
    from rni.analysis.behaviour import Dynamics as Dynamics
    from rni.analysis.behaviour import dynamics as dynamics
    from rni.analysis.coding import Mixing as Mixing
    from rni.analysis.coding import mixing as mixing
    from rni.analysis.dale import DaleMode as DaleMode
    from rni.analysis.dale import breaks_dale as breaks_dale
    from rni.analysis.dale import dale_mode as dale_mode
    from rni.analysis.dale import obstacle as obstacle
    from rni.analysis.dale import rectified_spectrum as rectified_spectrum
    from rni.analysis.decays import Fit as Fit
    from rni.analysis.decays import Memory as Memory
    from rni.analysis.decays import fit_integrals as fit_integrals
    from rni.analysis.decays import memory as memory
    from rni.analysis.examination import analyze as analyze
    from rni.analysis.flow import Flow as Flow
    from rni.analysis.latents import Latent as Latent
    from rni.analysis.latents import latent as latent
    from rni.analysis.manifold import LinearMap as LinearMap
    from rni.analysis.manifold import Principal as Principal
    from rni.analysis.manifold import current_coordinates as current_coordinates
    from rni.analysis.manifold import current_ratio as current_ratio
    from rni.analysis.manifold import explained as explained
    from rni.analysis.manifold import linear_map as linear_map
    from rni.analysis.manifold import null_ratio as null_ratio
    from rni.analysis.manifold import outliers as outliers
    from rni.analysis.manifold import principal as principal
    from rni.analysis.noisy import Noisy as Noisy
    from rni.analysis.perturbations import Robustness as Robustness
    from rni.analysis.perturbations import robustness as robustness
    from rni.analysis.population import PopulationVectors as PopulationVectors
    from rni.analysis.population import population_vectors as population_vectors
    from rni.analysis.population import populations as populations
    from rni.analysis.readout import fit_readout as fit_readout
    from rni.analysis.recorded import RecordingAnalysis as RecordingAnalysis
    from rni.analysis.results import Analysis as Analysis
    from rni.analysis.selectivity import Harmonics as Harmonics
    from rni.analysis.selectivity import angles as angles
    from rni.analysis.selectivity import harmonics as harmonics
    from rni.analysis.selectivity import rectified_selectivity as rectified_selectivity
    from rni.analysis.selectivity import selectivity_vectors as selectivity_vectors
    from rni.analysis.stationary import FixedPoints as FixedPoints
    from rni.analysis.stationary import fixed_points as fixed_points
    from rni.analysis.verdict import Verdict as Verdict
    from rni.analysis.verdict import judge as judge
    from rni.networks.accuracy import error_by_duration as error_by_duration
    from rni.networks.accuracy import longest_duration as longest_duration
    from rni.networks.accuracy import relative_error as relative_error
    from rni.weights import SVD as SVD
    from rni.weights import svd as svd

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "rni.analysis.behaviour": ("Dynamics", "dynamics"),
        "rni.analysis.coding": ("Mixing", "mixing"),
        "rni.analysis.dale": ("DaleMode", "breaks_dale", "dale_mode", "obstacle", "rectified_spectrum"),
        "rni.analysis.decays": ("Fit", "Memory", "fit_integrals", "memory"),
        "rni.analysis.examination": ("analyze",),
        "rni.analysis.flow": ("Flow",),
        "rni.analysis.latents": ("Latent", "latent"),
        "rni.analysis.manifold": (
            *("LinearMap", "Principal", "current_coordinates", "current_ratio", "explained", "linear_map"),
            *("null_ratio", "outliers", "principal"),
        ),
        "rni.analysis.noisy": ("Noisy",),
        "rni.analysis.perturbations": ("Robustness", "robustness"),
        "rni.analysis.population": ("PopulationVectors", "population_vectors", "populations"),
        "rni.analysis.readout": ("fit_readout",),
        "rni.analysis.recorded": ("RecordingAnalysis",),
        "rni.analysis.results": ("Analysis",),
        "rni.analysis.selectivity": (
            "Harmonics",
            "angles",
            "harmonics",
            "rectified_selectivity",
            "selectivity_vectors",
        ),
        "rni.analysis.stationary": ("FixedPoints", "fixed_points"),
        "rni.analysis.verdict": ("Verdict", "judge"),
        "rni.networks.accuracy": ("error_by_duration", "longest_duration", "relative_error"),
        "rni.weights": ("SVD", "svd"),
    },
)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
