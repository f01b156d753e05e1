"""Tasks: the inputs that a network receives and the outputs that it should give."""

from rni.tasks.base import TASKS as TASKS
from rni.tasks.base import Task as Task
from rni.tasks.integration import Integration as Integration
