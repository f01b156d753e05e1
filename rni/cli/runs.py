"""`rni runs`: the store of finished runs. Works without torch, so that it answers at once."""

import time
from typing import Annotated

import typer

from rni.cli.flags import Store as StoreFlag
from rni.core.errors import InputError, printable
from rni.runs.label import distinctions
from rni.runs.store import Entry, Store

app = typer.Typer(help="List, show and remove the runs in the store.", no_args_is_help=True)


@app.command("list")
def list_runs(store: StoreFlag = None) -> None:
    """Finished runs, the newest first: key, size, when it was written, and the run in a line.

    Runs with the same line are followed by the fields that differ.
    """
    place = Store(store)
    entries = place.entries()
    differing = distinctions([entry.label for entry in entries], [entry.specification for entry in entries])
    for entry, more in zip(entries, differing, strict=True):
        line = f"{entry.label}, {more}" if more else entry.label
        line = line if line.isprintable() else printable(line)
        print(f"{entry.key[:12]}  {_size(entry.size):>8}  {_date(entry.finished)}  {line}")
    print(f"{len(entries)} runs, {_size(sum(entry.size for entry in entries))}, in {place.root}")


@app.command()
def show(key: Annotated[str, typer.Argument(help="A key, or its first letters.")], store: StoreFlag = None) -> None:
    """One run: its network file, what computed it, and its specification as a configuration for `rni train`."""
    place = Store(store)
    entry = place.show(key)
    print(f"# {entry.key}\n# {place.path(entry.key)}\n# {_size(entry.size)}, written {_date(entry.finished)}")
    print(f"# {printable(entry.label)}")
    if entry.specification:
        import tomli_w

        print("# computed with " + printable(", ".join(f"{name} {value}" for name, value in entry.origin.items())))
        print(f"\n{tomli_w.dumps(entry.specification)}", end="")


@app.command()
def remove(
    keys: Annotated[list[str] | None, typer.Argument(metavar="KEY...", help="Keys, or their first letters.")] = None,
    all: Annotated[bool, typer.Option("--all", help="Every run in the store.")] = False,
    force: Annotated[bool, typer.Option("--force", help="With --all: don't ask.")] = False,
    store: StoreFlag = None,
) -> None:
    """Remove finished runs. They are computed again when they are needed."""
    place = Store(store)
    if all == bool(keys):
        problem = "both keys and --all" if all else "neither keys nor --all"
        raise InputError("remove", keys, "KEY..., or --all", problem=problem)
    if all and not force:
        _confirm(place.entries(), place)
    wanted = [place.show(key).key for key in keys] if keys else [entry.key for entry in place.entries()]
    for key in dict.fromkeys(wanted):
        print(f"removed {key[:12]}  {printable(place.remove(key).label)}")


def _confirm(entries: list[Entry], place: Store) -> None:
    size = _size(sum(entry.size for entry in entries))
    try:
        is_sure = not entries or typer.confirm(f"Remove all {len(entries)} runs, {size}, in {place.root}?", err=True)
    except typer.Abort:  # standard input is closed
        is_sure = False
    if not is_sure:
        raise InputError("--all", True, "y, or --force", problem="not confirmed, nothing was removed")


def _size(size: float) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
