"""The command line: one file a command. torch is imported by those that need it, so that help comes at once."""

import io
import os
import signal
import sys
from contextlib import suppress
from typing import Annotated

import typer

from rni.cli import analyze, cite, design, explore, export, reproduce, runs, simulate, sweep, theory, train
from rni.cli.ending import end_at_once
from rni.cli.fields import WithFields
from rni.cli.usage import Commands
from rni.core.atomic import OF_THE_SYSTEM, said
from rni.core.errors import Diverged, InputError

app = typer.Typer(
    cls=Commands,
    help="Recurrent neural integrators: train, design, analyse and export networks that integrate several signals.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command(cls=WithFields, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(train.train)
app.command()(design.design)
app.command()(analyze.analyze)
app.command()(simulate.simulate)
app.command()(export.export)
app.command()(explore.explore)
app.command()(reproduce.reproduce)
app.command()(sweep.sweep)
app.command()(theory.theory)
app.command()(cite.cite)
app.add_typer(runs.app, name="runs")


def _version(wanted: bool) -> None:
    if wanted:
        from rni import __version__

        print(f"rni {__version__}")
        raise typer.Exit()


@app.callback()
def _(
    version: Annotated[
        bool, typer.Option("--version", help="Say which it is.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    pass


def command() -> None:
    """`rni`, as a process of its own."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a locale without ± or – must not end a command
        sys.stdout.reconfigure(errors="backslashreplace")
    end_at_once(main)


def main() -> None:
    """Run the command line: what the user can mend is one line on standard error and exit code 2."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # batch systems send it first: time to save
    try:
        try:
            app(prog_name="rni")
        finally:
            if sys.stdout:
                sys.stdout.flush()
    except (InputError, Diverged) as error:
        for line in str(error).splitlines():
            print(f"rni: {line}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        if error.errno not in OF_THE_SYSTEM:
            raise
        if error.filename is None:  # standard output: nothing more can go there, not even at the exit
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"rni: {said(error)}; the same command goes on once that is mended", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("rni: interrupted", file=sys.stderr)
        sys.exit(130)
    finally:
        signal.signal(signal.SIGTERM, before)
