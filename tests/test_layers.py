"""The packages of rni form layers: each package imports only from the packages above it in this list."""

import importlib
import subprocess
import sys
from graphlib import TopologicalSorter

import pytest
from imports import edges, modules

PACKAGES = (
    "core",
    "theory",
    "tasks",
    "activations",
    "weights",
    "cells",
    "networks",
    "files",
    "losses",
    "training",
    "designs",
    "dynamics",
    "plots",
    "analysis",
    "runs",
    "pages",
    "papers",
    "cli",
    "__main__",
)
LAYER = {name: number for number, name in enumerate(PACKAGES)}

# Imports inside of functions that keep torch out of commands which answer without it.
LAZY = {"runs.store", "runs.engine", "core.threads"}

# Imports against the order of the layers, to be removed.
KNOWN: set[tuple[str, str]] = set()

MODULES = modules()
EDGES = edges(MODULES)


def package(module: str) -> str:
    return module.split(".")[0]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_package_imports_only_from_those_above_it(module):
    layer = LAYER[package(module)]
    targets = {target for target, _ in EDGES[module] if LAYER[package(target)] > layer}
    assert {(module, target) for target in targets} <= KNOWN


def test_the_library_does_not_import_the_code_of_papers():
    library = [module for module in MODULES if package(module) not in ("papers", "cli", "__main__")]
    assert [module for module in library if any(package(target) == "papers" for target, _ in EDGES[module])] == []


def test_the_framework_for_papers_does_not_know_a_paper():
    framework = [module for module in MODULES if package(module) == "papers" and "fanthomme2021" not in module]
    assert framework
    known = {target for module in framework for target, _ in EDGES[module] if "fanthomme2021" in target}
    assert known == set()


def test_theory_imports_only_core():
    targets = {target for module in MODULES if package(module) == "theory" for target, _ in EDGES[module]}
    assert {package(target) for target in targets} <= {"core", "theory"}


def test_no_module_is_part_of_an_import_cycle():
    graph = {
        module: {
            target
            for target, _ in targets
            if target != module and not module.startswith(f"{target}.") and (module, target) not in KNOWN
        }
        for module, targets in EDGES.items()
    }
    assert list(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("module", sorted(name for name in MODULES if name != "__main__"))
def test_no_function_hides_a_module(module):
    """`import rni.analysis.perturbations as p` gives the module, since no package has another thing of that name."""
    full = f"rni.{module}"
    imported = importlib.import_module(full)
    parent, _, name = full.rpartition(".")
    assert getattr(importlib.import_module(parent), name) is imported


def test_imports_inside_of_functions_only_keep_torch_out():
    inside = {module for module, targets in EDGES.items() if any(target.inside for target in targets)}
    assert {module for module in inside if module not in LAZY and package(module) != "cli"} <= {"analysis.results"}


@pytest.mark.parametrize(
    "light",
    [
        "rni",
        "rni.tasks",
        "rni.activations",
        "rni.weights",
        "rni.weights.vectors",
        "rni.losses",
        "rni.runs.store",
        "rni.runs.engine",
        "rni.cli",
        "rni.papers.fanthomme2021",
    ],
)
def test_import_without_torch(light):
    code = f"import sys, {light}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_stub_lists_the_public_names():
    import rni

    namespace: dict = {}
    stub = (MODULES["core.errors"].parents[1] / "__init__.pyi").read_text(encoding="utf-8")
    exec(stub[stub.index("__all__") :], namespace)
    assert namespace["__all__"] == rni.__all__
