"""`rni runs`: what is in the store of finished runs. Works without torch, so that it answers at once."""

import math
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rni.cli.flags import Store
from rni.core.errors import InputError

if TYPE_CHECKING:
    from rni.runs import store as runs

app = typer.Typer(help="List, show, watch and remove the runs in the store.", no_args_is_help=True)
Where = Annotated[str | None, typer.Option(metavar="CONDITION", help="'network.neurons == 1000 and seed < 3'.")]
UNITS = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


@app.command("list")
def list_runs(
    where: Where = None,
    sort: Annotated[str, typer.Option(metavar="NAME", help="when, size, or a field.")] = "when",
    store: Store = None,
) -> None:
    """Finished runs, the newest first: key, size, when it was written, and the run in a line.

    Runs whose lines would be the same are told apart by the fields that differ.
    """
    from rni.runs.label import apart

    place = _store(store)
    entries = _sorted(_chosen(place.entries(), where), sort)
    for entry, more in zip(entries, apart([entry.specification for entry in entries]), strict=True):
        line = ", ".join(filter(None, (entry.label, more)))
        print(f"{entry.key[:12]}  {_size(entry.size):>8}  {_when(entry.modified)}  {line}")
    print(f"{_total(entries)}, in {place.root}")


@app.command()
def watch(store: Store = None) -> None:
    """Runs that are computed at this moment: how far they are, and their losses up to now. Ctrl-C ends it."""
    from rni.runs.progress import watch

    watch(_store(store).root)


@app.command()
def prune(
    older: Annotated[float | None, typer.Option(metavar="DAYS", min=0, help="Runs written before that.")] = None,
    size: Annotated[str | None, typer.Option(metavar="SIZE", help="The oldest, until so much is left: 2GB.")] = None,
    where: Where = None,
    dry: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    store: Store = None,
) -> None:
    """Remove finished runs by age or size, of all or of those that meet a condition."""
    if older is None and size is None:
        raise InputError("prune: neither age nor size; allowed: --older DAYS, --size SIZE, or both")
    place = _store(store)
    entries = _chosen(place.entries(), where)
    room = math.inf if size is None else _bytes(size)
    since = -math.inf if older is None else time.time() - 86_400 * older
    removed = []
    for entry in entries:  # the newest first
        room -= entry.size
        if entry.modified < since or room < 0:
            removed.append(entry)
    for entry in removed if not dry else ():
        place.remove(entry.key)
    print(f"{'would remove' if dry else 'removed'} {_total(removed)}")


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


def _chosen(entries: "list[runs.Entry]", where: str | None) -> "list[runs.Entry]":
    """Those that meet a condition on fields of their specifications."""
    from rni.runs.condition import conditions
    from rni.runs.label import field

    wanted = [] if where is None else conditions(where)
    known = [entry for entry in entries if entry.specification is not None]
    for each in wanted if known else ():
        if all(field(entry.specification or {}, each.name) is None for entry in known):
            raise InputError(
                f"--where: {each.name!r}, no run has such a field; allowed: those that `rni runs show` shows"
            )
    return [
        entry for entry in entries if all(each.holds(field(entry.specification or {}, each.name)) for each in wanted)
    ]


def _sorted(entries: "list[runs.Entry]", name: str) -> "list[runs.Entry]":
    from rni.runs.label import field

    if name == "when":
        return entries
    if name == "size":
        return sorted(entries, key=lambda entry: -entry.size)
    values = {entry.key: field(entry.specification or {}, name) for entry in entries}
    if entries and all(value is None for value in values.values()):
        raise InputError(f"--sort: {name!r}; allowed: when, size, or a field that `rni runs show` shows")

    def place(entry: "runs.Entry") -> tuple[bool, float, str]:
        value = values[entry.key]
        number = isinstance(value, int | float)
        return value is None, value if number else math.inf, "" if number else str(value)

    return sorted(entries, key=place)


def _bytes(text: str) -> float:
    for unit, factor in UNITS.items():
        with suppress(ValueError):
            if text.endswith(unit) and float(text.removesuffix(unit)) >= 0:
                return factor * float(text.removesuffix(unit))
    raise InputError(f"--size: {text!r}; allowed: a number with a unit of {', '.join(UNITS)}, e.g. 2GB")


def _total(entries: "list[runs.Entry]") -> str:
    return f"{len(entries)} runs, {_size(sum(entry.size for entry in entries))}"


def _store(folder: Path | None) -> "runs.Store":
    from rni.runs.store import Store  # not before it is needed: help comes at once

    return Store(folder)


def _size(size: float) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"


def _when(modified: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(modified))
