"""What training minimises, a module each."""

from rni.losses.averaged import AveragedLoss as AveragedLoss
from rni.losses.base import LOSSES as LOSSES
from rni.losses.base import Loss as Loss
from rni.losses.base import LossPart as LossPart
from rni.losses.base import Schedule as Schedule
from rni.losses.batch import BatchLoss as BatchLoss
from rni.losses.gradient import Gradient as Gradient
from rni.losses.gradient import Trained as Trained
from rni.losses.own import OwnLoss as OwnLoss
from rni.losses.proxy import ProxyLoss as ProxyLoss
from rni.losses.proxy import RangeWarning as RangeWarning
from rni.losses.proxy import ReLUProxyLoss as ReLUProxyLoss
