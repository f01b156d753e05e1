"""Checkpoints: what a killed training needs to go on to the same bits."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Generator, Tensor

from rni.core.errors import InputError
from rni.core.tensors import read_tensors, write_tensors
from rni.networks.network import Network
from rni.training.best import Best
from rni.training.optimizers import Optimizer

FORMAT = "rni-checkpoint/3"


@dataclass
class Checkpoint:
    """A file, written atomically every `seconds`; `key` names the run, so that no other run continues from it.

    >>> from pathlib import Path
    >>> task = rni.Integration(0.9)
    >>> vectors = rni.vectors.independent(20, 1, torch.Generator().manual_seed(0))
    >>> net = rni.Network(task, *vectors, torch.zeros(20, 20))
    >>> kept = rni.training.Checkpoint(Path("run.checkpoint"), seconds=0)  # after every step
    >>> losses = rni.train(net, rni.BatchLoss(task), steps=10, checkpoint=kept)
    >>> len(rni.train(net, rni.BatchLoss(task), steps=20, checkpoint=kept))  # goes on at step 10
    20
    """

    path: Path
    key: str = ""
    seconds: float = 30.0
    _last: float = field(default_factory=time.monotonic, init=False)

    def due(self) -> bool:
        return time.monotonic() - self._last >= self.seconds

    def save(
        self, net: Network, optimizer: Optimizer, generator: Generator, losses: list[float], best: Best | None = None
    ) -> None:
        tensors: dict[str, Tensor] = {f"network.{k}": v for k, v in net.state_dict().items()}
        tensors |= {f"optimizer.{k}": v for k, v in optimizer.state().items()}
        tensors |= {f"best.{k}": v for k, v in best.state().items()} if best else {}
        tensors |= {"generator": generator.get_state(), "losses": torch.tensor(losses, dtype=torch.float64)}
        write_tensors(self.path, tensors, {"format": FORMAT, "key": self.key})
        self._last = time.monotonic()

    def resume(self, net: Network, optimizer: Optimizer, generator: Generator, best: Best | None = None) -> list[float]:
        """Put everything back as it was, and return the losses so far; an empty list where there is no checkpoint."""
        if not self.path.exists():
            return []
        tensors, header = read_tensors(self.path)
        if header.get("format") != FORMAT or header.get("key") != self.key:
            raise InputError(
                f"{self.path}: a checkpoint of another run or version ({json.dumps(header)[:200]}); "
                "allowed: one of the same specification; remove the file to start afresh"
            )
        if best and "best.loss" not in tensors:
            raise InputError(
                f"{self.path}: of a training that keeps the last network; allowed: one that keeps the best"
            )
        try:
            net.load_state_dict(_under("network.", tensors))
            optimizer.restore(_under("optimizer.", tensors))
            if best:
                best.restore(_under("best.", tensors))
            generator.set_state(tensors["generator"])
            return tensors["losses"].tolist()
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise InputError(
                f"{self.path}: damaged ({error}); allowed: a whole one; remove it to start afresh"
            ) from None


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
