"""Papers that `rni reproduce` reproduces, and what a paper is made of.

A paper is a package with a constant `PAPER` and a subpackage `figures`, which has one module for each figure; see
`Paper` and `Figure`. A paper outside of rni needs no change here: `rni reproduce --paper MODULE`.
"""

from rni.papers.claims import Claim, Erratum
from rni.papers.figure import Figure, Measured, Paper, Profile, Results, Row, Table

__all__ = ["Claim", "Erratum", "Figure", "Measured", "Paper", "Profile", "Results", "Row", "Table"]
