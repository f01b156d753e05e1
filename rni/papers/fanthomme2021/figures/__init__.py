"""The paper's figures, one module each; every module has a `FIGURE`."""
