r"""Integrators without training: W of rank D that satisfies the conditions of sections 4.3 and 5 of the paper.

With $W = L M^\dagger$ and $M^\dagger E = 1$ the currents are $\nu_t = L a_t$, and the D coordinates follow
$a_{t+1} = M^\dagger f(L a_t) + x_{t+1}$. The network integrates if $D^\dagger f(Lz) = S\Gamma z$ and
$M^\dagger f(Lz) = \Gamma z$ hold for all z that the integrals can reach. The first condition involves L only, and the
second one is linear in M.

The names are imported when they are first used.
"""

from rni.core.lazy import lazy_names

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "rni.designs.certificate": ("Certificate", "certify"),
        "rni.designs.designing": ("Design", "design"),
        "rni.designs.polishing": ("Polished", "polish"),
    },
)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
