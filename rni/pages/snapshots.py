r"""A training as a series of snapshots: $W \simeq \sum_{k \le K} \sigma_k\, l_k r_k^\dagger$ now and then, in float16.

They stand in a file of their own beside the network, NET.snapshots.safetensors, so that readers of network files need
not know them. Tensors: `steps` (snapshots,), `losses` (snapshots,), and for each step `STEP.values` (K,), `STEP.left`,
`STEP.right` (neurons, K), `STEP.encoders` and `STEP.decoders`. Header: `format`, and the `key` of the run.
"""

from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from rni.core.errors import InputError
from rni.core.tensors import read_tensors, write_tensors
from rni.networks.network import Network
from rni.weights import SVD, Weights, svd

FORMAT = "rni-snapshots/1"
TOLERANCE = 1e-3  # singular values below this part of the largest are left out
MODES = 64  # at most; an Adam-trained or Dale W has a full spectrum, of which these are the leading ones


class Snapshot(NamedTuple):
    """The network before a step of its training. modes: of W, in float32; encoders, decoders: (neurons, channels)."""

    step: int
    loss: float
    modes: SVD
    encoders: Tensor
    decoders: Tensor


class Snapshots:
    """A callback for training that keeps `count` snapshots of it in a file, close to each other at the beginning.

    The file grows with the training. One of the same run (`key`) goes on where it was.
    """

    def __init__(self, path: Path, count: int, steps: int, key: str = ""):
        if count < 2:
            raise InputError(f"snapshots: {count}; allowed: 2 or more, the first and the last")
        self.path, self.key = path, key
        self.due = {round(steps * (k / (count - 1)) ** 2) for k in range(count)}
        self.kept = {s.step: s for s in read(path, key)} if path.exists() else {}

    def __call__(self, step: int, loss: float, net: Network) -> None:
        if step in self.due:
            self.take(step, loss, net)

    @torch.no_grad()
    def take(self, step: int, loss: float, net: Network) -> None:
        """Keep the network as it is now."""
        encoders, decoders = (vectors.detach().clone() for vectors in (net.encoders, net.decoders))
        self.kept[step] = Snapshot(step, loss, leading_modes(net.recurrent), encoders, decoders)
        _write(self.path, [self.kept[k] for k in sorted(self.kept)], self.key)


def beside(path: Path) -> Path:
    """Where the snapshots of a network file are."""
    return path.with_name(f"{path.stem}.snapshots.safetensors")


def read(path: Path, key: str | None = None) -> list[Snapshot]:
    """The snapshots in a file in their order; none where they are of another run than `key`."""
    tensors, header = read_tensors(path)
    if header.get("format") != FORMAT:
        raise InputError(f"{path}: format {header.get('format')!r}; allowed: {FORMAT!r}")
    if key is not None and header.get("key") != key:
        return []
    try:
        return [
            Snapshot(
                step,
                loss,
                SVD(*(tensors[f"{step}.{part}"].float() for part in SVD._fields)),
                *(tensors[f"{step}.{part}"].float() for part in ("encoders", "decoders")),
            )
            for step, loss in zip(tensors["steps"].tolist(), tensors["losses"].tolist(), strict=True)
        ]
    except (KeyError, ValueError) as error:
        raise InputError(f"{path}: {type(error).__name__} {error}; allowed: a file that rni wrote") from None


def leading_modes(weights: Weights, tolerance: float = TOLERANCE, most: int = MODES) -> SVD:
    r"""The singular values above `tolerance` $\sigma_1$ and their vectors, at most so many."""
    count = 16
    while True:
        found = svd(weights, min(count, most))
        kept = int((found.values > tolerance * found.values.max()).sum()) if len(found.values) else 0
        if kept < len(found.values) or len(found.values) < count or count >= most:
            return SVD(*(part[..., :kept] for part in found))
        count *= 2


def _write(path: Path, snapshots: list[Snapshot], key: str) -> None:
    tensors = {
        "steps": torch.tensor([s.step for s in snapshots]),
        "losses": torch.tensor([s.loss for s in snapshots], dtype=torch.float64),
    }
    for s in snapshots:
        parts = s.modes._asdict() | {"encoders": s.encoders, "decoders": s.decoders}
        tensors |= {f"{s.step}.{name}": part.half() for name, part in parts.items()}
        tensors[f"{s.step}.values"] = s.modes.values.float()
    write_tensors(path, tensors, {"format": FORMAT, "key": key})
