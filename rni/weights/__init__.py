"""The recurrent matrix W in its forms, a module each.

>>> list(rni.weights.WEIGHTS.parts)
['dense', 'dale', 'lowrank']
"""

from rni.weights.base import WEIGHTS as WEIGHTS
from rni.weights.base import Weights as Weights
from rni.weights.base import WeightsPart as WeightsPart
from rni.weights.base import from_tensors as from_tensors
from rni.weights.base import names as names
from rni.weights.dale import Dale as Dale
from rni.weights.dale import dale_signs as dale_signs
from rni.weights.dense import Dense as Dense
from rni.weights.dense import random_matrix as random_matrix
from rni.weights.lowrank import LowRank as LowRank
from rni.weights.spectrum import SVD as SVD
from rni.weights.spectrum import svd as svd
