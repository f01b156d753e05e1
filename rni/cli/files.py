"""The files that commands read and write: of the right kind, and never one in the place of another by mistake."""

import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import typer

from rni.cli.flags import given
from rni.core.atomic import require_writable
from rni.core.errors import InputError
from rni.core.file_type import called, kind

TAKEN = {  # by which command
    "network": "rni analyze",
    "safetensors": "rni analyze",
    "state dict": "rni analyze",
    "arrays": "rni analyze",
    "configuration": "rni train",
    "snapshots": "rni explore, beside its network",
    "checkpoint": "rni train, where the same command is given again",
    "array": "rni simulate NET.safetensors --inputs",
}
ENDINGS = {  # of which people, and programs, know what is in them
    *(".safetensors", ".pt", ".pth", ".ckpt", ".npy", ".npz", ".onnx", ".pkl", ".h5", ".hdf5", ".mat"),
    *(".toml", ".json", ".csv", ".txt", ".md", ".py", ".html", ".htm", ".pdf", ".png", ".svg"),
}


def require_kind(path: Path, wanted: Iterable[str], allowed: str) -> None:
    """Refuse a file of another kind, and say which command takes it; what can't be read is its reader's to refuse."""
    found = kind(path)
    if found and found not in wanted:
        taken = f"; taken by {TAKEN[found]}" if found in TAKEN else ""
        raise InputError(f"{path}: {called(path)}{taken}; allowed: {allowed}")


def require_network(path: Path) -> None:
    """Refuse what is not a network file."""
    require_kind(path, ["network"], "a network file, NET.safetensors, as rni train and rni design write it")


def require_ending(out: Path, endings: Iterable[str]) -> None:
    """Refuse an output under a name that promises something else, or nothing."""
    if out.suffix not in endings:
        raise InputError(f"--out: {str(out)!r}; allowed: a name that ends in {' or '.join(endings)}")


def require_output(
    context: typer.Context, out: Path, endings: Iterable[str], *, force: bool, reads: Iterable[Path | None] = ()
) -> None:
    """Refuse, before any work, an output under a wrong name, over what the command reads, or that can't be written.

    What is there already is not replaced in silence: only where --out or --force says so.
    """
    if out.suffix in ENDINGS:
        require_ending(out, endings)
    if any(path is not None and _same(path, out) for path in reads):
        raise InputError(f"--out: {str(out)!r}, which is read by the same command; allowed: another name")
    require_writable(out)
    if out.exists() and not force:
        if "out" not in given(context):
            raise InputError(f"{out}: there already; allowed: --out with another name, or --force to replace it")
        print(f"rni: {out}: there already, to be replaced", file=sys.stderr)


def _same(one: Path, other: Path) -> bool:
    with suppress(OSError):
        return one.samefile(other)
    return False
