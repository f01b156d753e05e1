r"""Integrators without training: W of rank D that satisfies the conditions of sections 4.3 and 5 of the paper.

With $W = L M^\dagger$ and $M^\dagger E = 1$ the currents are $\nu_t = L a_t$, and the D coordinates follow
$a_{t+1} = M^\dagger f(L a_t) + x_{t+1}$. The network integrates if $D^\dagger f(Lz) = S\Gamma z$ and
$M^\dagger f(Lz) = \Gamma z$ hold for all z that the integrals can reach. The first condition involves L only, and the
second one is linear in M.

The names are imported when they are first used.
"""

from importlib import import_module
from typing import Any

_MODULE_OF = {
    "Certificate": "certificate",
    "Design": "designing",
    "Polished": "polishing",
    "certify": "certificate",
    "design": "designing",
    "polish": "polishing",
}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value  # so that the next access does not call this function
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
