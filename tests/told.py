"""What a test knows of a value that its type does not say, and the training that fast ways are compared with."""

from typing import Any, TypeVar

from rni import InputError
from rni.networks.network import Network
from rni.runs.run import TrainRun, parse_run
from rni.training.descent import descend, make_plan

T = TypeVar("T")


def of(kind: type[T], value: object) -> T:
    """A value of that kind, such as the form of a network's weights."""
    assert isinstance(value, kind), f"{type(value).__name__}; expected: {kind.__name__}"
    return value


def there(value: T | None) -> T:
    """A value that may be None elsewhere."""
    assert value is not None
    return value


def mistyped(value: Any) -> Any:
    """A value of a type that is refused, by type checkers as well."""
    return value


def train_step_by_step(net: Network, loss: Any, **options: Any) -> list[float]:
    """`rni.train` by the general way, whatever faster way there is."""
    return descend(net, make_plan(net, loss, **options))


def refused(error: InputError) -> str:
    """The field that an error is about."""
    return error.field or str(error).partition(": ")[0]


def train_run(raw: Any) -> TrainRun:
    """Parse the configuration of a training."""
    return of(TrainRun, parse_run(raw))
