"""The figures of the paper. Each module defines the names that `rni.papers.Figure` lists."""
