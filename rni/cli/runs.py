"""`rni runs`: what is in the store of finished runs. Works without torch, so that it answers at once."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rni.cli.flags import Store
from rni.errors import InputError

if TYPE_CHECKING:
    from rni.runs import store as runs

app = typer.Typer(help="List, show and remove the finished runs in the store.", no_args_is_help=True)


@app.command("list")
def list_runs(store: Store = None) -> None:
    """All finished runs, the newest first: key, size, when it was written, and the run in a line.

    Runs whose lines would be the same are told apart by the fields that differ.
    """
    from rni.runs.label import apart

    place = _store(store)
    entries = place.entries()
    for entry, more in zip(entries, apart([entry.specification for entry in entries]), strict=True):
        line = ", ".join(filter(None, (entry.label, more)))
        print(f"{entry.key[:12]}  {_size(entry.size):>8}  {_when(entry.modified)}  {line}")
    print(f"{len(entries)} runs, {_size(sum(entry.size for entry in entries))}, in {place.root}")


@app.command()
def show(key: Annotated[str, typer.Argument(help="A key, or its first letters.")], store: Store = None) -> None:
    """One run: where it is, and its specification as a configuration for `rni train`."""
    entry = _store(store).show(key)
    print(f"# {entry.key}\n# {entry.path}\n# {_size(entry.size)}, written {_when(entry.modified)}\n# {entry.label}")
    if entry.specification is not None:
        import tomli_w

        print(f"\n{tomli_w.dumps(entry.specification)}", end="")


@app.command()
def remove(
    keys: Annotated[list[str] | None, typer.Argument(metavar="KEY...", help="Keys, or their first letters.")] = None,
    all: Annotated[bool, typer.Option("--all", help="Every run in the store.")] = False,
    force: Annotated[bool, typer.Option("--force", help="With --all: don't ask.")] = False,
    store: Store = None,
) -> None:
    """Remove finished runs. They are computed again when they are asked for."""
    place = _store(store)
    if all == bool(keys):
        raise InputError(f"remove: {'both keys and --all' if all else 'nothing named'}; allowed: KEY..., or --all")
    if all and not force:
        _confirm(place)
    wanted = [place.show(key).key for key in keys] if keys else [entry.key for entry in place.entries()]
    for key in dict.fromkeys(wanted):
        print(f"removed {key[:12]}  {place.remove(key).label}")


def _confirm(place: "runs.Store") -> None:
    entries = place.entries()
    size = _size(sum(entry.size for entry in entries))
    try:
        sure = not entries or typer.confirm(f"Remove all {len(entries)} runs, {size}, in {place.root}?", err=True)
    except typer.Abort:  # nobody there to answer
        sure = False
    if not sure:
        raise InputError("--all: not confirmed, nothing was removed; allowed: y, or --force")


def _store(folder: Path | None) -> "runs.Store":
    from rni.runs.store import Store  # not before it is needed: help comes at once

    return Store(folder)


def _size(size: float) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"


def _when(modified: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(modified))
