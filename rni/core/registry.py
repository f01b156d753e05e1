"""Parts, which are configurable components that are found by name, and the registries that hold them.

A part is one class. Its fields are its configuration and its methods are its behaviour. Parts import torch lazily, so
that building and printing a configuration takes milliseconds.
"""

import dataclasses
import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import BuiltinFunctionType
from typing import Annotated, Any, Generic, TypeVar, dataclass_transform

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, TypeAdapter, ValidationError, ValidationInfo
from pydantic.dataclasses import dataclass
from pydantic_core import ArgsKwargs, PydanticSerializationError

from rni.core.errors import InputError, nearest

T = TypeVar("T")
C = TypeVar("C")

Allowed = Collection[str] | None
"""The references ``module:name`` that may be imported; None allows all, because a person named the code directly."""


def as_tuple(values: Any) -> Any:
    """Convert a number, a sequence, an array or a tensor to a tuple. Return anything else unchanged."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, int | float) and not isinstance(values, bool):
        return (values,)
    if isinstance(values, list | tuple | range):
        elements: tuple[Any, ...] = tuple(values)
        return tuple(value.tolist() if hasattr(value, "tolist") else value for value in elements)
    return values


Number = Annotated[float, Field(allow_inf_nan=False)]
Numbers = Annotated[tuple[Number, ...], BeforeValidator(as_tuple)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


@dataclass_transform(frozen_default=True, field_specifiers=(Field,))
def part(cls: type[T]) -> type[T]:
    """Turn a class into a part: a frozen dataclass whose fields are checked when an object is made.

    An invalid, missing or unknown field raises `InputError`.

    Examples
    --------
    >>> from rni.core.registry import part
    >>> @part
    ... class Echo:
    ...     delay: int = 1
    >>> Echo(3)
    Echo(delay=3)
    >>> Echo(delay="long")
    Traceback (most recent call last):
        ...
    rni.core.errors.InputError: delay: 'long'; allowed: a whole number
    """
    config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)
    dataclass(frozen=True, config=config)(cls)  # adds the fields and their checks to the class itself
    init = cls.__init__

    @wraps(init)
    def init_with_short_errors(self: T, *args: Any, **fields: Any) -> None:
        try:
            init(self, *args, **fields)
        except ValidationError as error:
            raise InputError.from_pydantic(error, field_names(type(self))) from None

    cls.__init__ = init_with_short_errors
    return cls


def field_names(cls: type) -> list[str]:
    """Return the names of the fields that a configuration of the part may contain."""
    return [field.name for field in dataclasses.fields(cls) if field.init]


def field_descriptions(cls: type) -> dict[str, str]:
    """Return the descriptions of the fields of a part, from the section Parameters of its docstring."""
    text = inspect.cleandoc(cls.__doc__ or "")
    _, _, section = text.partition("Parameters\n----------\n")
    descriptions: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        if line.startswith("----"):  # the underlined heading of the next section
            descriptions.pop(names[0], None)
            break
        if line and not line.startswith(" "):
            names = [name.strip() for name in line.partition(" : ")[0].split(",")]
            descriptions |= dict.fromkeys(names, "")
        else:
            descriptions |= {name: f"{descriptions[name]} {line.strip()}".strip() for name in names}
    return descriptions


class Registry(Generic[T]):
    """The parts of one family, such as all tasks, by their names.

    Parameters
    ----------
    family : str
        The name of the family in error messages, for example "task" or "activation".
    base : type
        The base class of the family.
    from_function : callable, optional
        Makes a part of this family from a function ``f`` that a user gives in place of a part. The part has to keep the
        function in its only field, which is called ``function``. Without it, functions are refused.

    Examples
    --------
    >>> from rni.core.registry import Registry, part
    >>> class Task: ...
    >>> TASKS = Registry("task", Task)
    >>> @TASKS.register("echo")
    ... @part
    ... class Echo(Task):
    ...     delay: int = 1
    >>> TASKS.build({"name": "echo", "delay": 3})
    Echo(delay=3)
    >>> TASKS.config(Echo(2))
    {'name': 'echo', 'delay': 2}
    """

    def __init__(self, family: str, base: type[T], from_function: Callable[[Callable[..., Any]], T] | None = None):
        self.family, self.base, self.from_function = family, base, from_function
        self.parts: dict[str, type[T]] = {}

    def register(self, name: str) -> Callable[[type[C]], type[C]]:
        """Return a decorator that registers a class under `name`."""

        def decorate(cls: type[C]) -> type[C]:
            self.parts[name] = cls  # pyright: ignore[reportArgumentType]: its base class is that of the family
            return cls

        return decorate

    @property
    def field(self) -> tuple[BeforeValidator, PlainSerializer]:
        """The annotations of a field that holds a part of this family: ``Annotated[Task, *TASKS.field]``.

        The field accepts what `build` accepts, and is written as `config` writes it.
        """

        def build(config: Any, info: ValidationInfo) -> T:
            return self.build(config, allow=(info.context or {}).get("allow"))

        return BeforeValidator(build), PlainSerializer(self.config)

    def build(self, config: Any, *, allow: Allowed = None) -> T:
        """Build a part from its name, or from a table with its name and fields.

        Parameters
        ----------
        config : str, mapping, callable or part
            A string is a registered name, or a reference ``module:name`` to a part outside the package. A mapping has
            such a string under "name", and the fields of the part. A part is returned unchanged.
        allow : collection of str, optional
            The references ``module:name`` that may be imported. The default, None, allows all of them: use it where a
            person named the code directly. A reader of files passes the references that the user allowed, because a
            file may come from anywhere.

        Raises
        ------
        InputError
            If no part has this name, if the reference is not in `allow`, or if a field is invalid.
        """
        if isinstance(config, self.base):
            return config
        if self.from_function and callable(config) and not isinstance(config, type):
            return self.from_function(config)
        if not isinstance(config, str | Mapping):
            raise InputError(self.family, config, f"{', '.join(self.parts)}, module:name, or a table with such a name")
        fields = {"name": config} if isinstance(config, str) else dict(config)
        if "name" not in fields:
            raise InputError(self.family, config, "a name, or a table with a name")
        found = self.find(fields.pop("name"), allow)
        if not isinstance(found, type):  # a function of the user
            if fields:
                raise InputError(next(iter(fields)), fields, "no fields", problem="not a field of a function")
            return self.build(found)
        return build_part(found, fields, allow)

    def config(self, part: T) -> dict[str, Any]:
        """Return the name and the fields of a part as a dictionary from which `build` makes an equal part.

        The name of a part that is not registered is its reference ``module:Class``. Fields that are None are left out,
        because TOML has no such value.

        Raises
        ------
        InputError
            If the class or the function of the part cannot be imported by a reference.
        """
        cls = type(part)
        if self.from_function and not self._registered(cls) and hasattr(part, "function"):
            return {"name": reference(part.function, self.family)}  # pyright: ignore[reportAttributeAccessIssue]
        name = self._registered(cls) or reference(cls, self.family)
        if not dataclasses.is_dataclass(cls):  # a class of the user
            if vars(part):
                raise InputError(self.family, part, "a class with the decorator rni.core.registry.part")
            return {"name": name}
        try:
            return {"name": name, **TypeAdapter[Any](cls).dump_python(part, mode="json", exclude_none=True)}
        except PydanticSerializationError as error:
            if isinstance(error.__cause__, InputError):  # a nested part or function that cannot be imported
                raise error.__cause__ from None
            raise

    def name(self, part: T) -> str:
        """Return the registered name of a part. Return ``module:name`` for a part outside the package.

        Unlike `config`, this also names a class that cannot be imported.
        """
        cls = type(part)
        if name := self._registered(cls):
            return name
        code = getattr(part, "function", cls) if self.from_function else cls
        module, name = getattr(code, "__module__", cls.__module__), getattr(code, "__qualname__", cls.__qualname__)
        return f"{module}:{name}"

    def _registered(self, cls: type) -> str | None:
        return next((name for name, registered in self.parts.items() if registered is cls), None)

    def find(self, name: Any, allow: Allowed = None) -> Any:
        """Return the class of this registered name, or the class or function of this reference ``module:name``."""
        if isinstance(name, str) and name in self.parts:
            return self.parts[name]
        if not isinstance(name, str) or ":" not in name:
            known = ", ".join(self.parts)
            raise InputError(self.family, name, f"{known}, or module:name", hint=nearest(name, self.parts))
        found = import_reference(name, self.family, allow)
        if isinstance(found, type) and not issubclass(found, self.base):
            raise InputError(self.family, name, f"a subclass of {self.base.__name__}")
        return found


def build_part(cls: type[T], fields: Mapping[str, Any], allow: Allowed = None) -> T:
    """Build a part of a known class from its fields. Nested parts may import what `allow` lists.

    Raises
    ------
    InputError
        If a field is invalid, missing or unknown.
    """
    if not dataclasses.is_dataclass(cls):  # a class of the user that has no fields
        return cls(**fields)
    try:
        # as the generated __init__ does, which cannot pass on the context
        made = cls.__new__(cls)
        validator = cls.__pydantic_validator__  # pyright: ignore[reportAttributeAccessIssue]
        validator.validate_python(ArgsKwargs((), dict(fields)), self_instance=made, context={"allow": allow})
        return made
    except ValidationError as error:
        raise InputError.from_pydantic(error, field_names(cls)) from None


def reference(thing: Any, field: str) -> str:
    """Return the reference ``module:name`` by which a class or function can be imported.

    Raises
    ------
    InputError
        For lambdas, local functions and classes, and whatever the main script defines, because other processes cannot
        import these.
    """
    # the qualified names of torch's own functions, such as torch.sin, cannot be imported
    attribute = "__name__" if isinstance(thing, BuiltinFunctionType) else "__qualname__"
    module, name = getattr(thing, "__module__", None), getattr(thing, attribute, "<")
    if module and module != "__main__" and "<" not in name:
        try:
            if attrgetter(name)(import_module(module)) is thing:
                return f"{module}:{name}"
        except (ImportError, AttributeError):
            pass
    raise InputError(
        field, thing, "a class or function at the top level of an importable module, so that it can be saved"
    )


def import_reference(name: str, field: str, allow: Allowed = None) -> Any:
    """Import what a reference ``module:name`` refers to. Modules in the current folder are found as well.

    Raises
    ------
    InputError
        If `allow` does not contain the reference, or if it cannot be imported.
    """
    if allow is not None and name not in allow:
        raise InputError(field, name, f"after allow={name!r} (--allow {name}), because it runs code of that module")
    module, _, attribute = name.partition(":")
    try:
        with _current_folder_on_path():
            return attrgetter(attribute)(import_module(module))
    except (ImportError, AttributeError, ValueError, SyntaxError) as error:
        raise InputError(field, name, "a module:name that can be imported", problem=f"{name!r} ({error})") from None


@contextmanager
def _current_folder_on_path() -> Iterator[None]:
    folder = str(Path.cwd())
    if folder in sys.path or "" in sys.path:
        yield
        return
    sys.path.append(folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
