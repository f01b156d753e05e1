"""The flags that several commands share."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from rni.core.errors import InputError

NetworkFile = Annotated[Path, typer.Argument(metavar="NET.safetensors", help="A network file.")]
Neurons = Annotated[int, typer.Option(help="How many, of a designed network.")]
Activation = Annotated[str, typer.Option(help="A name, or a table: {name = 'sigmoid', slope = 50}.")]
Seed = Annotated[int, typer.Option(help="Encoders and decoders are those of a training with this seed.")]
Decays = Annotated[str | None, typer.Option(metavar="NUMBERS", help="One for each channel, e.g. 0.995 0.993.")]
Scales = Annotated[str | None, typer.Option(metavar="NUMBERS", help="One for each channel; default: 1.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Local processes; default: all cores.")]
Threads = Annotated[int | None, typer.Option(min=1, help="That products run on; default: 1, all for large networks.")]
Scheduler = Annotated[str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler instead.")]
Store = Annotated[Path | None, typer.Option(metavar="DIR", help="Finished runs; default: the user's cache folder.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there already.")]
PAGE = (".html", ".htm")
NETWORK = (".safetensors",)


def require_one_engine(workers: int | None, scheduler: str | None) -> None:
    """Refuse local processes and a cluster at once."""
    if workers is not None and scheduler is not None:
        raise InputError("--scheduler: given with --workers; allowed: one of the two")


def given(context: typer.Context) -> set[str]:
    """The names of the options that are on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


@contextmanager
def saying_what_is_kept(store: Path | None) -> Iterator[None]:
    """Say at Ctrl-C where the runs are, before the workers have saved theirs: they take a moment."""
    try:
        yield
    except KeyboardInterrupt:
        from rni.runs.store import Store

        kept = f"finished runs, and those begun as they were last saved, are kept in {Store(store).root}"
        print(f"rni: interrupted; {kept}: the same command goes on from there", file=sys.stderr, flush=True)
        raise typer.Exit(130) from None
