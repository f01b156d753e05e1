r"""A network that runs in the page: its weights, embedded, and a program (`explorer/`) that simulates and draws it.

W goes in as its modes, $W = \sum_k \sigma_k\, l_k r_k^\dagger$, where few hold it, and else as it is, in float32. The
outputs of the page then equal those of `Network.outputs` to within 1e-5. (In float16 it would be 1e-3.)
"""

import base64
import json
from collections.abc import Sequence
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

import torch
from jinja2 import Environment, PackageLoader
from torch import Tensor

from rni import __version__
from rni.activations import ACTIVATIONS, HOMOGENEOUS
from rni.analysis.manifold import current_coordinates
from rni.core.atomic import write_atomically
from rni.core.errors import InputError, path_of
from rni.networks.network import Network, require_network
from rni.pages.snapshots import Snapshot
from rni.pages.template import sha256
from rni.tasks.inputs import bursts, white_noise
from rni.weights import SVD, Dale, LowRank, Weights, svd

EXACT = 1e-6  # of sigma_1: what the modes below it do to the outputs is far below 1e-5
LEADING = 32  # modes that go along with a W that needs them all, to cut it to
LARGEST = 2000  # neurons, where W is dense: 16 MB
SPECTRUM = 100  # singular values shown
POINTS = 400  # of the losses


def explore(
    net: Network,
    path: str | Path = "explore.html",
    *,
    name: str | None = None,
    snapshots: Sequence[Snapshot] = (),
    losses: Sequence[float] = (),
) -> Path:
    """Write a page in which the network runs: push it, look inside, disturb it. Returns where it is.

    >>> net = rni.design(rni.Integration([0.99, 0.9]), neurons=100).network
    >>> rni.explore(net, "integrator.html").name
    'integrator.html'
    """
    path = path_of(path)
    if path.suffix not in (".html", ".htm"):
        raise InputError(f"path: {str(path)!r}; allowed: a name that ends in .html")
    write_atomically(path, page(net, name=name, snapshots=snapshots, losses=losses).encode())
    return path


def page(
    net: Network,
    *,
    name: str | None = None,
    snapshots: Sequence[Snapshot] = (),
    losses: Sequence[float] = (),
) -> str:
    """The page as text. `name` is its title; `snapshots` and `losses` of its training make it show that too."""
    environment = Environment(loader=PackageLoader("rni.pages", "."), autoescape=True)
    program, style = (
        resources("rni.pages").joinpath(f"explorer.{kind}").read_text(encoding="utf-8") for kind in ("js", "css")
    )
    described = describe(net, name, snapshots, losses)
    return environment.get_template("explorer.html").render(
        name=described["name"],
        # in a script element nothing but "<" could end it
        network=json.dumps(described, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        program=program,
        style=style,
        program_hash=sha256(program),
        style_hash=sha256(style),
    )


@torch.no_grad()
def describe(net: Network, name: str | None, snapshots: Sequence[Snapshot], losses: Sequence[float]) -> dict[str, Any]:
    """Everything that the page needs to know, as plain data."""
    require_network(net)
    if net.f.name not in ACTIVATIONS.parts:
        raise InputError(f"activation: {net.f!r}; allowed in a page: {', '.join(ACTIVATIONS.parts)}")
    modes, spectrum, whole = _modes(net.recurrent)
    if not whole and net.neurons > LARGEST:
        raise InputError(
            f"neurons: {net.neurons}, with W of full rank; allowed: up to {LARGEST}, or a W that few modes hold"
        )
    described = net.f.parameters_for_file()
    return {
        "name": name or f"{net.neurons} {net.f.name} neurons, {_counted(net.channels, 'channel')}",
        "version": __version__,
        "neurons": net.neurons,
        "decays": net.task.decays,
        "scales": net.task.scales,
        "leak": net.leak,
        "activation": {"name": net.f.name}
        | {key: _packed(v) if isinstance(v, Tensor) else v for key, v in described.items()},
        "encoders": _packed(net.encoders.T),
        "decoders": _packed(net.decoders.T),
        "recurrent": None if whole else _packed(net.recurrent.matrix().T),
        "modes": _described(modes, net),
        "spectrum": spectrum.tolist(),
        "signs": _packed(net.recurrent.signs, torch.int8) if isinstance(net.recurrent, Dale) else None,
        "losses": _thinned(losses),
        "snapshots": [_snapshot(s, net) for s in snapshots],
    }


def _modes(weights: Weights) -> tuple[SVD, Tensor, bool]:
    """The modes of W, its first singular values, and whether the modes are the whole of W; if not, the leading ones."""
    found = svd(weights)
    rank = int((found.values > EXACT * found.values[:1]).sum())
    whole = weights.factors() is not None or rank <= weights.neurons // 4  # half of what W itself takes
    count = rank if whole else LEADING
    return SVD(*(part[..., :count] for part in found)), found.values[:SPECTRUM], whole


def _described(modes: SVD, net: Network, dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    r"""The modes, and the line $\alpha_k \simeq R_k\,\bar y + \alpha^0_k$ that the coordinates follow.

    The constant is there for activations with f(0) other than 0.
    """
    generator = torch.Generator().manual_seed(0)
    inputs = white_noise if net.f.name in HOMOGENEOUS else bursts
    x = inputs(64, 25, net.channels, generator).to(net.dtype)
    y = net.task.targets(x).flatten(0, 1)
    rows = [current_coordinates(nu, modes.left) for nu, _ in net.steps(x)]
    coordinates = torch.stack(rows, dim=1).flatten(0, 1)
    known = torch.cat([y, torch.ones_like(y[:, :1])], dim=1)
    # not `linear_map`, which refuses a channel of decay 0, a W without modes and a snapshot that runs away
    line = (torch.linalg.pinv(known.double()) @ coordinates.double().nan_to_num(0, 0, 0)).T
    return {
        "values": modes.values.tolist(),
        "left": _packed(modes.left.T, dtype),
        "right": _packed(modes.right.T, dtype),
        "map": line[:, :-1].tolist(),
        "offset": line[:, -1].tolist(),
    }


def _snapshot(s: Snapshot, net: Network) -> dict[str, Any]:
    if s.encoders.shape != net.encoders.shape:
        found, allowed = tuple(s.encoders.shape), tuple(net.encoders.shape)
        raise InputError(f"snapshots: encoders of shape {found}; allowed: {allowed}, as the network has")
    modes = SVD(*(part.to(net.dtype) for part in s.modes))
    then = net.changed(LowRank(modes.left * modes.values, modes.right), encoders=s.encoders, decoders=s.decoders)
    trained = {"encoders": (s.encoders, net.encoders), "decoders": (s.decoders, net.decoders)}
    return {
        "step": s.step,
        "loss": s.loss,
        "modes": _described(modes, then, torch.float16),
    } | {key: _packed(old.T) for key, (old, new) in trained.items() if not torch.equal(old.half(), new.half())}


def _packed(values: Tensor, dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    """Numbers as base64 of their little-endian bytes."""
    array = values.detach().cpu().to(dtype).contiguous().numpy()
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return {"type": array.dtype.name, "data": base64.b64encode(little.tobytes()).decode()}


def _thinned(losses: Sequence[float]) -> list[list[float]]:
    every = max(1, -(-len(losses) // POINTS))
    return [[step, losses[step]] for step in range(0, len(losses), every)]


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
