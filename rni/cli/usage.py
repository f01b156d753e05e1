"""How a command line is read: lists in one dialect; what is wrong with it is an InputError like any other."""

from typing import Any

import typer
from typer.core import TyperGroup

from rni.cli.lists import joined
from rni.errors import InputError

UsageError: Any = typer.BadParameter.__base__  # typer has no public name for it


class Commands(TyperGroup):
    """The commands of `rni`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, joined(args))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except UsageError as error:
            if type(error).__name__ == "NoArgsIsHelpError":  # `rni runs`, answered with its help
                raise
            raise InputError(_said(error)) from None


def _said(error: Any) -> str:
    if (option := getattr(error, "option_name", None)) and str(error.message).startswith("No such option"):
        likely = f"; did you mean {' or '.join(error.possibilities)}?" if error.possibilities else ""
        return f"{option}: no such option{likely}"
    return error.format_message()
