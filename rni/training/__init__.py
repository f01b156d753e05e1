"""Training: descent, Adam, torch's optimizers, checkpoints; faster ways for linear networks and the ReLU proxy."""

from rni.training.best import kept_step as kept_step
from rni.training.checkpoint import Checkpoint as Checkpoint
from rni.training.descent import train as train
from rni.training.optimizers import Adam as Adam
from rni.training.optimizers import GradientDescent as GradientDescent
from rni.training.optimizers import Torch as Torch
from rni.training.reduced import train_reduced as train_reduced
from rni.training.two_points import train_two_points as train_two_points
