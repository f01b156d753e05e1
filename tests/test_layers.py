"""Each layer imports only from those before it, and no module takes part in a circle."""

import importlib
import subprocess
import sys
from graphlib import TopologicalSorter

import pytest
from imports import edges, modules

LAYERS = (
    ("errors",),
    ("atomic", "described", "interrupt", "kinds", "memory", "part", "products", "streams", "threads"),
    ("theory",),  # closed forms on arrays
    ("tensors", "inputs", "task", "activation", "vectors", "weights"),
    ("network",),
    ("accuracy",),
    ("losses",),
    ("training",),
    ("designs",),
    ("exchange",),
    ("analysis", "transfer"),
    ("runs",),
    ("pages", "plot"),
    ("paper",),
    ("cli", "__main__"),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
# imported within functions, to keep torch out of what answers without it
LAZY = {"runs.store", "runs.engine", "threads"}
SHOWN = {"analysis.results"}  # results that draw themselves when they are asked to, with what is above them


MODULES = modules()
EDGES = {
    name: {(t, lazy) for t, lazy in targets if not (lazy and name in SHOWN)} for name, targets in edges(MODULES).items()
}


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_layer_imports_only_from_those_before_it(module):
    own = LEVEL[module.split(".")[0]]
    assert {target for target, _ in EDGES[module] if LEVEL[target.split(".")[0]] > own} == set()


def test_theory_imports_nothing_of_ours_but_errors():
    targets = {target for name in MODULES if name.startswith("theory") for target, _ in EDGES[name]}
    assert {target for target in targets if not target.startswith("theory")} == {"errors"}


def test_no_module_takes_part_in_a_circle():
    graph = {
        name: {t for t, _ in targets if t != name and not name.startswith(f"{t}.")} for name, targets in EDGES.items()
    }
    assert list(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("module", sorted(name for name in MODULES if name != "__main__"))
def test_no_function_hides_a_module(module):
    """`import rni.analysis.perturbations as p` gives the module, since no package has that name for something else."""
    package, _, name = f"rni.{module}".rpartition(".")
    found = importlib.import_module(f"rni.{module}")
    assert getattr(importlib.import_module(package), name) is found


def test_imports_within_functions_only_keep_torch_out():
    lazy = {name for name, targets in EDGES.items() if any(inside for _, inside in targets)}
    assert {name for name in lazy if name not in LAZY and not name.startswith("cli.")} == set()


@pytest.mark.parametrize("light", ["rni", "rni.task", "rni.runs.store", "rni.runs.engine", "rni.cli"])
def test_what_answers_at_once_does_not_import_torch(light):
    code = f"import sys, {light}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
