"""The tensors by which network files and arrays describe recurrent weights."""

from collections.abc import Mapping

from torch import Tensor

from rni.core.errors import InputError
from rni.weights.base import Weights
from rni.weights.configuration import WEIGHTS


def names() -> list[str]:
    """Return the names of all tensors that weights of any registered form may consist of.

    >>> rni.weights.names()
    ['recurrent', 'recurrent_left', 'recurrent_right', 'room', 'signs', 'tolerance']
    """
    known = frozenset().union(*(form.names | form.optional for form in _forms()))
    return sorted(known)


def from_tensors(tensors: Mapping[str, Tensor]) -> Weights:
    """Build the weights whose method `tensors` returned these tensors. Tensors with other names are ignored.

    Raises
    ------
    InputError
        If no registered form of weights consists of these tensors.

    Examples
    --------
    >>> w = rni.weights.LowRank(torch.ones(5, 1), torch.ones(5, 1))
    >>> type(rni.weights.from_tensors(w.tensors())).__name__
    'LowRank'
    """
    given = {name: tensors[name] for name in names() if name in tensors}
    for form in _forms():
        if form.names <= given.keys() <= form.names | form.optional:
            return form.from_tensors(given)
    sets = "; or ".join(" and ".join(sorted(form.names)) for form in _forms())
    problem = "do not make up a matrix" if given else "missing"
    raise InputError(", ".join(given) or "recurrent", sorted(given), sets, problem=problem)


def _forms() -> list[type[Weights]]:
    return [configuration.form() for configuration in WEIGHTS.parts.values()]
