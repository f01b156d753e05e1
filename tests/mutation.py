"""Which mistakes do the tests see? A sample of small ones, made in the source one at a time: `make mutants`.

First all tests run once, without mistakes, to learn which of them run which lines. Then each mutant runs in a fork of
one process, against the tests that run its lines, the quickest first, until one fails or the time is up. For each
survivor a test is missing, or the mistake makes no difference.
"""

import argparse
import ast
import os
import pickle
import random
import re
import resource
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib import import_module
from itertools import accumulate, islice
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("losses", "theory", "designs", "analysis")
TESTS = re.compile(
    r"tests/(analysis|losses|theory|training)/"
    r"|_(axes|bent|certificate|currents|design|foreign|leak|mistakes|own|polish)\.py"
)
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
SYMMETRIC = re.compile(r"(.*\.)?(min|max|minimum|maximum|equal|dot|hypot)$")  # in their first two arguments
LOADED = ("matplotlib.pyplot", "pydantic", "scipy.optimize", "scipy.signal", "sympy", "torch.testing", "typer")  # once
NOT_COPIED = (".*", "__pycache__", "node_modules", "build", "dist", "site", "report")
MODULE = range(1 << 30)  # its lines outside of functions run when it is read: any test of it may see them
TIMES_UP, KILLED, SURVIVED, NOT_RUN = "time is up", "killed", "survived", "no test runs it"


class Watched(NamedTuple):
    """Of a test: the processor time that it takes, and the lines of each file that it runs."""

    seconds: float
    lines: dict[str, set[int]]


class Mutant(NamedTuple):
    """A module with one mistake: its whole source, the place before and after, and the lines to be run to see it."""

    path: Path
    line: int
    before: str
    after: str
    source: str
    lines: range


def sites(path: Path) -> int:
    """In how many ways a module can be mistaken."""
    return sum(1 for _ in _sites(ast.parse(path.read_text(encoding="utf-8"))))


def mutant(path: Path, number: int) -> Mutant:
    """A module with one of its mistakes; all else stays as it is, to the letter."""
    whole = path.read_bytes()
    node, change, lines = next(islice(_sites(ast.parse(whole)), number, None))
    starts = [0]
    for line in whole.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
    before = ast.unparse(node)
    change(node)
    after = ast.unparse(node)
    source = b"%s(%s)%s" % (whole[:start], after.encode(), whole[end:])
    return Mutant(path, node.lineno, before, after, source.decode(), lines)


def _sites(node: ast.AST, lines: range = MODULE, inside: bool = False) -> Iterator[tuple]:
    """(node, what changes it in place, lines) for each mistake that can be made: none in words, annotations, seeds."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert) or _draws(node):
        return
    inside = inside or isinstance(node, ast.FunctionDef)
    if inside and isinstance(node, ast.stmt):
        lines = _lines(node)
    if isinstance(node, ast.BinOp) and type(node.op) in OTHER:
        yield node, lambda n: setattr(n, "op", OTHER[type(n.op)]()), lines
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OTHER:
        yield node, lambda n: n.ops.__setitem__(0, OTHER[type(n.ops[0])]()), lines
    if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value in (0, 1):
        yield node, lambda n: setattr(n, "value", 1 - n.value), lines
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node, lambda n: setattr(n, "op", ast.UAdd()), lines
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, lambda n: setattr(n, "operand", ast.UnaryOp(ast.Not(), n.operand)), lines
    if isinstance(node, ast.Call) and len(node.args) > 1 and not _same_swapped(node):
        yield node, lambda n: n.args.__setitem__(slice(2), n.args[1::-1]), lines
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _sites(child, lines, inside)


def _lines(node: ast.stmt) -> range:
    """Those of a statement, without its body."""
    body, first = getattr(node, "body", None), [each.lineno for each in getattr(node, "decorator_list", [])]
    return range(
        min([node.lineno, *first]),
        max(node.lineno + 1, body[0].lineno if body else (node.end_lineno or node.lineno) + 1),
    )


def _draws(node: ast.AST) -> bool:
    """Whether it makes a generator: another draw is no mistake."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("manual_seed", "stream"))


def _same_swapped(node: ast.Call) -> bool:
    """Whether the first two arguments of a call can't be swapped, or make no difference, or are words."""
    two = node.args[:2]
    texts = all(isinstance(a, ast.JoinedStr) or (isinstance(a, ast.Constant) and isinstance(a.value, str)) for a in two)
    same = ast.unparse(two[0]) == ast.unparse(two[1]) or SYMMETRIC.match(ast.unparse(node.func))
    return bool(texts or same or any(isinstance(a, ast.Starred) for a in two))


class Watching:
    """A plugin of pytest: which tests pass, and which lines of the packages they run."""

    def __init__(self, package: Path):
        self.within = tuple(f"{package / 'rni' / name}{os.sep}" for name in PACKAGES)
        self.found: dict[str, Watched] = {}

    def _called(self, frame, event, argument):
        return self._ran(frame, event, argument) if frame.f_code.co_filename.startswith(self.within) else None

    def _ran(self, frame, event, argument):
        self.lines[frame.f_code.co_filename].add(frame.f_lineno)
        return self._ran

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        self.lines: dict[str, set[int]] = defaultdict(set)
        self.failed = False
        start = sum(os.times()[:4])
        sys.settrace(self._called)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            if not self.failed:  # else the mutants that it runs would seem to be seen
                self.found[item.nodeid] = Watched(sum(os.times()[:4]) - start, self.lines)

    def pytest_runtest_logreport(self, report):
        self.failed |= report.failed


class Choosing:
    """A plugin of pytest: only the chosen tests, in their order; the one that fails."""

    def __init__(self, tests: list[str]):
        self.order = {test: number for number, test in enumerate(tests)}
        self.found = "the tests can't be read"

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        items[:] = sorted((i for i in items if i.nodeid in self.order), key=lambda i: self.order[i.nodeid])

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.found = report.nodeid


def run(files: list[str], package: Path, seconds: float, plugin: Watching | Choosing):
    """Run tests on a copy of the package, in a fork: the verdict, and what the plugin found (None if time is up)."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
        sys.path.insert(0, str(package))
        os.environ["PYTHONPATH"] = str(package)  # for the commands that tests start
        os.chdir(package)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *["-x"] * isinstance(plugin, Choosing)]
        code = pytest.main([*options, *files], plugins=[plugin])
        with os.fdopen(writing, "wb") as file:
            pickle.dump(plugin.found, file)
        os._exit(int(code))
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        found = file.read()
    _, status = os.waitpid(child, 0)
    verdict = TIMES_UP if os.WIFSIGNALED(status) else KILLED if os.waitstatus_to_exitcode(status) else SURVIVED
    return verdict, pickle.loads(found) if found else None


def watched(package: Path) -> dict[str, Watched]:
    """Which lines each test runs, when there is no mistake."""
    tests = (str(test.relative_to(ROOT)) for test in sorted(ROOT.joinpath("tests").rglob("test_*.py")))
    _, found = run([test for test in tests if TESTS.search(test)], package, 3600, Watching(package))
    return found or sys.exit("no test passes without any mistake")


def tests_of(made: Mutant, place: str, tests: dict[str, Watched], seconds: float) -> list[str]:
    """Those that run the lines of a mutant, from the quickest on, as far as time allows."""
    chosen = [test for test in tests if any(line in made.lines for line in tests[test].lines.get(place, ()))]
    chosen.sort(key=lambda test: tests[test].seconds)
    if not chosen and made.lines == MODULE:  # of a module without functions
        chosen = [test for test in tests if f"test_{made.path.stem}.py" in test]
    times = accumulate(tests[test].seconds for test in chosen)
    return [test for number, (test, time) in enumerate(zip(chosen, times, strict=True)) if time < seconds or not number]


def judged(made: Mutant, package: Path, tests: dict[str, Watched], seconds: float) -> tuple[str, str]:
    """The verdict of the tests on a mutant, put into a copy of the package for as long, and the test that fails."""
    place = package / made.path.relative_to(ROOT)
    chosen = tests_of(made, str(place), tests, seconds)
    if not chosen:
        return NOT_RUN, ""
    whole = place.read_text(encoding="utf-8")
    _write(place, made.source)
    verdict, failed = run(_files(chosen), package, 2 * seconds + 30, Choosing(chosen))
    _write(place, whole)
    return verdict, (failed or "") if verdict == KILLED else ""


def _files(tests: list[str]) -> list[str]:
    return [*dict.fromkeys(test.split("::")[0] for test in tests)]


def _write(place: Path, source: str) -> None:
    place.write_text(source, encoding="utf-8")
    for compiled in place.parent.glob(f"__pycache__/{place.stem}.*"):  # is told from others by the second and the size
        compiled.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="*", default=PACKAGES)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=30, help="of processor time that a mutant's tests need")
    given = parser.parse_args()
    for name in LOADED:
        import_module(name)
    paths = [path for name in given.packages for path in sorted((ROOT / "rni" / name).rglob("*.py"))]
    places = [(path, number) for path in paths for number in range(sites(path))]
    sample = random.Random(given.seed).sample(places, min(given.count, len(places)))
    print(f"{len(places)} mutants, a sample of {len(sample)}", flush=True)
    score: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder).resolve() / "copy"
        shutil.copytree(ROOT, package, ignore=shutil.ignore_patterns(*NOT_COPIED))
        tests, failed = watched(package), set()
        print(f"{len(tests)} tests, {sum(test.seconds for test in tests.values()):.0f} s", flush=True)
        for made in (mutant(*place) for place in sample):
            verdict, by = judged(made, package, tests, given.seconds)
            module = str(made.path.relative_to(ROOT))
            score[module, verdict] += 1
            failed |= {by} - {""}
            print(f"{verdict}: {module}:{made.line}: {made.before:.60} -> {made.after:.60}  {by}", flush=True)
        again = sorted(failed & tests.keys())
        verdict, by = run(_files(again), package, 3600, Choosing(again)) if again else (SURVIVED, "")
        print(f"the {len(again)} tests that failed, without any mistake: {by if verdict == KILLED else 'pass'}")
    verdicts = (KILLED, TIMES_UP, SURVIVED, NOT_RUN)
    for module in sorted({module for module, _ in score}):
        print(module, {verdict: score[module, verdict] for verdict in verdicts})
    killed = sum(number for (_, verdict), number in score.items() if verdict in (KILLED, TIMES_UP))
    share = killed / len(sample)
    print(f"killed {killed} of {len(sample)}, {share:.1%} ± {(share * (1 - share) / len(sample)) ** 0.5:.1%}")


if __name__ == "__main__":
    main()
