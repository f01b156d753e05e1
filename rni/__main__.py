"""`python -m rni`: the command line."""

from rni.cli import command

command()
