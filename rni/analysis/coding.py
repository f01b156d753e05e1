"""How the neurons of a network, or of a recording, code the integrals."""

import math
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from rni.analysis.effective import Principal
from rni.analysis.manifold import linear_map
from rni.analysis.population import NAMES, population_vectors, populations
from rni.analysis.selectivity import mixing


@dataclass(frozen=True)
class Coding:
    """linearity, populations, mixing: as in `Analysis`, empty where there is nothing to code.

    data: "selectivity" (neurons, channels); "coordinates" and "predicted" (samples, channels), the currents along
    their principal directions and the part of them that is linear in the integrals; for populations also "vectors"
    (2, neurons) and "populations" (neurons,). notes: what was left out, and why.
    """

    linearity: float = math.nan
    populations: dict[str, float] | None = None
    mixing: float | None = None
    data: dict[str, Tensor] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def coding(currents: Tensor, activity: Tensor, integrals: Tensor, shape: Principal) -> Coding:
    """Of currents and activity (trials, time, neurons) with the principal components `shape` of the currents."""
    nu, h, y = (values.flatten(0, 1) for values in (currents, activity, integrals))
    channels, spread = y.shape[1], y.std(0)
    if not bool(spread.all()):
        return Coding()
    nu_moved, y_moved = nu - nu.mean(0), y - y.mean(0)
    line, variance = linear_map(nu_moved, y_moved), nu_moved.square().sum(0)
    selectivity = line.matrix * spread
    found = Coding(
        linearity=float((line.explained * variance).nansum() / variance.sum()),
        mixing=float(mixing(selectivity).mean) if channels > 1 else None,
        data={
            "selectivity": selectivity,
            "coordinates": shape.coordinates(nu, channels),
            "predicted": y_moved @ line.matrix.T @ shape.directions[:, :channels],
        },
    )
    if channels > 1 or not bool((h >= 0).all()):
        return found
    if bool((y >= 0).all()) or bool((y <= 0).all()):
        return replace(found, notes=("populations: left out, the integral has one sign only",))
    return _with_populations(found, h, y[:, 0])


def _with_populations(found: Coding, activity: Tensor, integral: Tensor) -> Coding:
    vectors = population_vectors(activity, integral)
    both = torch.stack(vectors)
    # the paper's 1e-3 for 1000 neurons, whatever the size of the activity
    member = populations(vectors, 1000**-0.5 * float(both.square().mean().sqrt()))
    parts = {name: float((member == k).double().mean()) for k, name in enumerate(NAMES)}
    return replace(found, populations=parts, data=found.data | {"vectors": both, "populations": member})
