"""Tasks: the inputs that a network receives and the outputs that it should give."""
