"""Losses, which are what training minimises. Each loss has one file.

>>> sorted(rni.losses.LOSSES.parts)
['averaged', 'batch', 'custom', 'proxy']
>>> from typing import get_args
>>> get_args(rni.losses.Trained), get_args(rni.losses.Schedule)
(('recurrent', 'recurrent+decoders', 'decoders', 'all'), ('constant', 'warmup', 'cosine'))
"""

from rni.losses.averaged import AveragedLoss as AveragedLoss
from rni.losses.base import LOSSES as LOSSES
from rni.losses.base import Loss as Loss
from rni.losses.base import Schedule as Schedule
from rni.losses.batch import BatchLoss as BatchLoss
from rni.losses.custom import CustomLoss as CustomLoss
from rni.losses.gradient import Gradient as Gradient
from rni.losses.gradient import Trained as Trained
from rni.losses.proxy import ProxyLoss as ProxyLoss
from rni.losses.proxy import RangeWarning as RangeWarning
from rni.losses.proxy import ReLUProxyLoss as ReLUProxyLoss
