# The public names, for type checkers. A test compares this list with the one in `__init__.py`.

from rni.designs.certificate import Certificate as Certificate
from rni.designs.certificate import certify as certify
from rni.designs.designing import Design as Design
from rni.designs.designing import design as design
from rni.designs.polishing import Polished as Polished
from rni.designs.polishing import polish as polish
