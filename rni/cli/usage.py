"""How a command line is read: lists in one dialect; what is wrong with it is an InputError like any other."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from rni.cli.lists import are_numbers, joined
from rni.core.errors import InputError, did_you_mean, in_words

UsageError: Any = typer.BadParameter.__base__  # typer has no public name for it


class Commands(TyperGroup):
    """The commands of `rni`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with _in_our_words():
            return super().parse_args(ctx, joined(args))

    def invoke(self, ctx: Any) -> Any:
        try:
            with _in_our_words():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            print("rni: interrupted; no file is left half written", file=sys.stderr)
            raise typer.Exit(130) from None


@contextmanager
def _in_our_words() -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # answered with the help
            raise
        raise InputError(_said(error)) from None


def _said(error: Any) -> str:
    """`thing: value; allowed: ...` for what typer says in sentences."""
    parameter, option, message = getattr(error, "param", None), getattr(error, "option_name", None), error.message
    command: Any = error.ctx.command if error.ctx else None
    path = error.ctx.command_path if error.ctx else "rni"
    if parameter is not None:
        name = next((opt for opt in parameter.opts if opt.startswith("--")), parameter.metavar or parameter.name)
        if type(error).__name__ == "MissingParameter":
            text = f" {parameter.metavar or 'VALUE'}" if name.startswith("--") else ""
            return f"{name}: missing; allowed: {path} {name}{text}"
        wrong = error.__cause__.errors()[0] if hasattr(error.__cause__, "errors") else {"msg": message}
        value = f" {wrong['input']!r}" if "input" in wrong else ""
        return f"{name}:{value}; allowed: {in_words(wrong['msg'])}"
    if option is not None and message.startswith("No such option"):
        known = [name.removeprefix("--") for each in command.params for name in each.opts if name.startswith("--")]
        likely = did_you_mean(option.removeprefix("--"), known).replace("mean ", "mean --")
        return f"{option}: no such option; allowed: {', '.join(f'--{name}' for name in known)}{likely}"
    if option is not None:
        takes = "does not take" not in message
        return f"{option}: {'no' if takes else 'a'} value; allowed: {option}{' VALUE' if takes else ', alone'}"
    if message.startswith("No such command"):
        name, known = message.split("'")[1], list(command.commands) if command else []
        return (
            f"{name}: no such command; allowed: {', '.join(known)}{did_you_mean(name, known) or f'; see {path} --help'}"
        )
    if message.startswith("Got unexpected extra"):
        extra = message.partition(" (")[2].removesuffix(")")
        likely = are_numbers(extra) and any("--decays" in each.opts for each in command.params)
        return f"{extra}: unexpected; allowed: {f'--decays {extra}' if likely else f'see {path} --help'}"
    return message
