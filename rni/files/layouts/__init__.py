"""Layouts of files: the names that other programs give to the tensors of a network, and what they mean by them.

Each layout is one file. To read the files of your own program, write a class like those here in a file of your own, and
import that file before you call `rni.analyze`.

Layouts that are registered later are tried first. Therefore PsychRNN, which has the names of plain matrices and others,
comes after `matrices`, and the layouts of users come after all of these.
"""

from rni.files.layouts.arrays import Arrays as Arrays
from rni.files.layouts.keras import KerasWeights as KerasWeights
from rni.files.layouts.layout import LAYOUTS as LAYOUTS
from rni.files.layouts.layout import FoundArrays as FoundArrays
from rni.files.layouts.layout import Layout as Layout
from rni.files.layouts.layout import UnusedTensors as UnusedTensors
from rni.files.layouts.layout import recognise as recognise
from rni.files.layouts.linear_layers import LinearLayers as LinearLayers
from rni.files.layouts.low_rank import FullRank as FullRank
from rni.files.layouts.low_rank import LowRank as LowRank
from rni.files.layouts.matrices import Matrices as Matrices
from rni.files.layouts.psychrnn import PsychRNN as PsychRNN
from rni.files.layouts.torch_rnn import TorchRNN as TorchRNN
