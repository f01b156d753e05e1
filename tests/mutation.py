"""Which mistakes do the tests see? A sample of small ones, made in the source one at a time: `make mutants`.

Each mutant runs in a fork of one process, against the test files that name what its module defines, until one fails or
the processor time is up. For each survivor a test is missing, or the mistake makes no difference.
"""

import argparse
import ast
import os
import random
import re
import resource
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGES = ("losses", "theory", "designs", "analysis")
SKIPPED = "paper|chaos|runs|pages|cli|readme|fuzz|layers|lists"  # tests of other things, or of all
_IMPORT = r"from rni\.\w+\.(%s) import"
OTHER = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
FILES = 4  # of tests, the closest ones
TIMES_UP, KILLED, SURVIVED = "time is up", "killed", "survived"


class Mutant(NamedTuple):
    """A module with one mistake: its whole source, and the line before and after."""

    path: Path
    line: int
    before: str
    after: str
    source: str


def sites(path: Path) -> int:
    """In how many ways a module can be mistaken."""
    return sum(1 for _ in _sites(ast.parse(path.read_text())))


def mutant(path: Path, number: int) -> Mutant:
    """A module with one of its mistakes."""
    tree = ast.parse(path.read_text())
    node, change = next(islice(_sites(tree), number, None))
    before = ast.unparse(node)
    change(node)
    return Mutant(path, node.lineno, before, ast.unparse(node), ast.unparse(tree))


def _sites(node: ast.AST) -> Iterator[tuple]:
    """(node, what changes it in place) for each mistake that can be made; none in messages and annotations."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
        return
    if isinstance(node, ast.BinOp) and type(node.op) in OTHER:
        yield node, lambda n: setattr(n, "op", OTHER[type(n.op)]())
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OTHER:
        yield node, lambda n: n.ops.__setitem__(0, OTHER[type(n.ops[0])]())
    if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value in (0, 1):
        yield node, lambda n: setattr(n, "value", 1 - n.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node, lambda n: setattr(n, "op", ast.UAdd())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, lambda n: setattr(n, "operand", ast.UnaryOp(ast.Not(), n.operand))
    if isinstance(node, ast.Call) and len(node.args) > 1 and not any(isinstance(a, ast.Starred) for a in node.args[:2]):
        yield node, lambda n: n.args.__setitem__(slice(2), n.args[1::-1])
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _sites(child)


def tests_of(path: Path) -> list[Path]:
    """The test files that name most of what a module, or those of its folder that import it, define; at most four."""
    weights = {path: 10}
    folder = {other: other.read_text() for other in path.parent.glob("*.py") if other.stem != "__init__"}
    for _ in folder:  # those that import it, and those that import these
        known = "|".join(other.stem for other in weights)
        weights |= {other: weights.get(other, 1) for other, text in folder.items() if re.search(_IMPORT % known, text)}
    words = {name: weight for other, weight in weights.items() for name in _defined(other)}
    scores = {}
    for test in ROOT.joinpath("tests").rglob("test_*.py"):
        if not re.search(SKIPPED, str(test.relative_to(ROOT))):
            text = test.read_text()
            scores[test] = sum(weight for name, weight in words.items() if re.search(rf"\b{name}\b", text))
            scores[test] = 10 * scores[test] * (1 + 9 * (path.stem in test.stem)) + (path.stem in test.stem)
    return [test for test in sorted(scores, key=lambda test: -scores[test]) if scores[test]][:FILES]


def _defined(path: Path) -> list[str]:
    nodes = ast.parse(path.read_text()).body
    names = (node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef))
    return [name for name in names if not name.startswith("_")]


def judged(made: Mutant, package: Path, seconds: int) -> str:
    """The verdict of the tests on a mutant, put into a copy of the package for as long."""
    place = package / made.path.relative_to(ROOT)
    whole = place.read_text()
    place.write_text(made.source)
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        sys.path.insert(0, str(package))
        os.chdir(package)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        import pytest

        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
        os._exit(int(pytest.main([*options, *(str(test.relative_to(ROOT)) for test in tests_of(made.path))])))
    _, status = os.waitpid(child, 0)
    place.write_text(whole)
    shutil.rmtree(place.parent / "__pycache__", ignore_errors=True)
    if os.WIFSIGNALED(status):
        return TIMES_UP
    return SURVIVED if os.waitstatus_to_exitcode(status) == 0 else KILLED


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="*", default=PACKAGES)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=120, help="of processor time a mutant")
    given = parser.parse_args()
    import torch  # here and not in each fork

    torch.set_num_threads(1)
    paths = [path for name in given.packages for path in sorted((ROOT / "rni" / name).rglob("*.py"))]
    places = [(path, number) for path in paths for number in range(sites(path))]
    sample = random.Random(given.seed).sample(places, min(given.count, len(places)))
    print(f"{len(places)} mutants, a sample of {len(sample)}", flush=True)
    score: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("rni", "tests"):
            shutil.copytree(ROOT / name, Path(folder, name), ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        for path in dict.fromkeys(path for path, _ in sample):  # else all mutants would seem to be seen
            source = path.read_text()
            if judged(Mutant(path, 0, "", "", source), Path(folder), given.seconds) != SURVIVED:
                sys.exit(f"{path.relative_to(ROOT)}: its tests fail, or need more time, without any mistake")
        for made in (mutant(*place) for place in sample):
            verdict, module = judged(made, Path(folder), given.seconds), str(made.path.relative_to(ROOT))
            score[module, verdict] += 1
            print(f"{verdict}: {module}:{made.line}: {made.before:.60} -> {made.after:.60}", flush=True)
    for module in sorted({module for module, _ in score}):
        print(module, {verdict: score[module, verdict] for verdict in (KILLED, SURVIVED, TIMES_UP)})
    killed = sum(number for (_, verdict), number in score.items() if verdict != SURVIVED)
    print(f"killed {killed} of {len(sample)}, {killed / len(sample):.0%}; {TIMES_UP} counts as killed")


if __name__ == "__main__":
    main()
