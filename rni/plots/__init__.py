"""Figures of arrays and networks, drawn with matplotlib."""
