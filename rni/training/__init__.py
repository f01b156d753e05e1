"""Training: plain descent and Adam, with checkpoints; linear networks in the span of their vectors."""

from rni.training.checkpoint import Checkpoint as Checkpoint
from rni.training.descent import train as train
from rni.training.optimizers import Adam as Adam
from rni.training.optimizers import GradientDescent as GradientDescent
from rni.training.reduced import train_reduced as train_reduced
