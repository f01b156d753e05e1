r"""Snapshots of a network in training: leading modes of W at several steps.

A snapshot has $W \simeq \sum_{k \le K} \sigma_k\, l_k r_k^\dagger$ in float16.
They are in a file of their own next to the network, NET.snapshots.safetensors, so that readers of network files need
not know them. The tensors are `steps` (snapshots,), `losses` (snapshots,), and for each step `STEP.values` (K,),
`STEP.left`, `STEP.right` (neurons, K), `STEP.encoders` and `STEP.decoders`. The header has the `format` and the `key`
of the run.
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
TOLERANCE = 1e-3  # singular values below this part of the largest one are left out
MODES = 64  # largest number of modes, because W under Adam or Dale's law has a full spectrum


class Snapshot(NamedTuple):
    """A network before a step of its training.

    Attributes
    ----------
    step : int
        The step.
    loss : float
        The loss at this step.
    modes : SVD
        The leading modes of W, in float32.
    encoders, decoders : Tensor (neurons, channels)
        The vectors.
    """

    step: int
    loss: float
    modes: SVD
    encoders: Tensor
    decoders: Tensor


class Snapshots:
    """A callback for trainings that writes snapshots to a file. Snapshots are denser at the beginning.

    The file grows during the training. A resumed run adds to its file.

    Parameters
    ----------
    path : Path
        The file.
    count : int
        The number of snapshots.
    steps : int
        The number of steps of the training.
    key : str
        The key of the run.
    """

    def __init__(self, path: Path, count: int, steps: int, key: str = ""):
        if count < 2:
            raise InputError("snapshots", count, "2 or more, for the first and the last step")
        self.path, self.key = path, key
        self.due = {round(steps * (k / (count - 1)) ** 2) for k in range(count)}
        self.kept = {s.step: s for s in read(path, key)} if path.exists() else {}

    def __call__(self, step: int, loss: float, net: Network) -> None:
        if step in self.due:
            self.take(step, loss, net)

    @torch.no_grad()
    def take(self, step: int, loss: float, net: Network) -> None:
        """Add a snapshot of the network and write the file."""
        encoders, decoders = (vectors.detach().clone() for vectors in (net.encoders, net.decoders))
        self.kept[step] = Snapshot(step, loss, leading_modes(net.recurrent), encoders, decoders)
        _write(self.path, [self.kept[k] for k in sorted(self.kept)], self.key)


def beside(path: Path) -> Path:
    """Return the path of the snapshots of a network file."""
    return path.with_name(f"{path.stem}.snapshots.safetensors")


def read(path: Path, key: str | None = None) -> list[Snapshot]:
    """Read the snapshots in a file, in their order. If `key` is given and is not that of the file, there are none."""
    tensors, header = read_tensors(path)
    if header.get("format") != FORMAT:
        raise InputError(str(path), header.get("format"), FORMAT, problem=f"format {header.get('format')!r}")
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
        problem = f"{type(error).__name__} {error}"
        raise InputError(str(path), None, "a file that rni wrote", problem=problem) from None


def leading_modes(weights: Weights, tolerance: float = TOLERANCE, most: int = MODES) -> SVD:
    r"""Return the singular values above `tolerance` $\sigma_1$ and their vectors, at most `most` of them."""
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
