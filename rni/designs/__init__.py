r"""Integrators without training: W of rank D from the conditions of sections 4.3 and 5, with no descent on W.

With $W = L M^\dagger$ and $M^\dagger E = 1$ the currents are $\nu_t = L a_t$ and the D coordinates follow
$a_{t+1} = M^\dagger f(L a_t) + x_{t+1}$. So the network integrates if, for all z that the integrals can reach,
$D^\dagger f(Lz) = S\Gamma z$, which asks something of L only, and $M^\dagger f(Lz) = \Gamma z$, which is linear in M.
"""

from rni.designs.certificate import Certificate as Certificate
from rni.designs.certificate import certify as certify
from rni.designs.designing import Design as Design
from rni.designs.designing import design as design
from rni.designs.polishing import Polished as Polished
from rni.designs.polishing import polish as polish
