"""The fields of a configuration as flags of `rni train`: its help and its completion are made from the classes."""

import dataclasses
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

from rni.core.lazy import LazyModule
from rni.core.registry import field_descriptions

if TYPE_CHECKING:
    from rni.losses import base as losses
    from rni.runs import run as runs
    from rni.tasks import integration
else:  # only help and completion need the classes
    losses, runs = LazyModule("rni.losses.base"), LazyModule("rni.runs.run")
    integration = LazyModule("rni.tasks.integration")


def field_help() -> dict[str, dict[str, tuple[str, str]]]:
    """Return the default and the description of each field, by table. Fields outside of a table are under ""."""
    tables: dict[str, dict[str, tuple[str, str]]] = {
        "": _help_of(runs.TrainRun, leave_out=("task", "network", "training"))
    }
    for table, cls in (
        ("task", integration.Integration),
        ("network", runs.NetworkConfig),
        ("training", runs.TrainingConfig),
    ):
        tables[table] = _help_of(cls)

    tables["training"]["loss"] = ("batch", f"{', '.join(losses.LOSSES.parts)}, or module:name")

    # a field that several losses have is listed once, with their names
    for loss, cls in losses.LOSSES.parts.items():
        for name, (default, text) in _help_of(cls, leave_out=("task",)).items():
            known_default, known_text = tables["training"].get(name, (default, ""))
            known_names, _, _ = known_text.partition(": ")
            names = f"{known_names}, {loss}" if known_text else loss
            tables["training"][name] = (known_default, f"{names}: {text}")
    return tables


def _help_of(cls: type, leave_out: tuple[str, ...] = ()) -> dict[str, tuple[str, str]]:
    descriptions = field_descriptions(cls)
    return {
        field.name: (_default_text(field), _plain(descriptions.get(field.name, "")))
        for field in dataclasses.fields(cls)
        if field.init and field.name not in leave_out
    }


def _default_text(field: dataclasses.Field) -> str:
    value = getattr(field.default, "default", field.default)  # pydantic keeps the default in an object of its own
    value = getattr(value, "name", value)
    if value in (None, (), dataclasses.MISSING) or repr(value) == "PydanticUndefined":
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def _plain(text: str) -> str:
    """Remove the markup of formulas from a description."""
    return re.sub(r":math:`([^`]*)`", r"\1", text).replace("\\", "").replace("`", "")


class WithFields(TyperCommand):
    """A command that takes any field as a flag."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        super().format_options(ctx, formatter)
        for section, fields in field_help().items():
            with formatter.section(f"Fields, {section}" if section else "Fields, with their defaults"):
                rows = {f"{_flag(name)} {default}".rstrip(): words for name, (default, words) in fields.items()}
                formatter.write_dl(list(rows.items()))

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        flags = {_flag(name): words for fields in field_help().values() for name, (_, words) in fields.items()}
        begun = {flag: words for flag, words in flags.items() if incomplete and flag.startswith(incomplete)}
        return super().shell_complete(ctx, incomplete) + [
            SimpleNamespace(value=flag, type="plain", help=words) for flag, words in begun.items()
        ]


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
