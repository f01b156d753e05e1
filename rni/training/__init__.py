"""Training: gradient descent, Adam, the optimizers of torch, and checkpoints."""

from rni.training.best import kept_step as kept_step
from rni.training.checkpoint import Checkpoint as Checkpoint
from rni.training.optimizers import Adam as Adam
from rni.training.optimizers import GradientDescent as GradientDescent
from rni.training.optimizers import Torch as Torch
from rni.training.paths import train as train
