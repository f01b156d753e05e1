"""Draw the architecture of the package from its source and from runs of its commands.

`python docs/architecture.py` writes docs/imports.svg, the graph of imports between packages, and docs/flow.md, the
functions that the five main commands call. A test compares both with the package.
"""

import ast
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "rni"
PACKAGES = (
    *("core", "theory", "tasks", "activations", "weights", "networks", "files", "losses", "training", "designs"),
    *("plots", "analysis", "runs", "pages", "papers", "cli"),
)

CONFIGURATION = """
[task]
decays = [0.995, 0.993]
[network]
neurons = 100
[training]
loss = "proxy"
optimizer = "adam"
steps = 50
"""
COMMANDS = {
    "train": ["train", "two.toml", "--out", "two.safetensors"],
    "design": ["design", "--decays", "0.995", "0.993", "--neurons", "100", "--out", "designed.safetensors"],
    "analyze": ["analyze", "designed.safetensors"],
    "sweep": ["sweep", "two.toml", "--over", "seed=0,1", "--workers", "1", "--store", "store", "--out", "sweep"],
    "reproduce": ["reproduce", "fig1", "--workers", "1", "--store", "store", "--out", "report"],
}

# Prints the functions of rni that a command calls, each at its first call, indented by the depth of the call.
TRACER = """
import os, runpy, sys
package, arguments = sys.argv[1], sys.argv[2:]
seen, depth = set(), 0
lines = open("trace.txt", "w", encoding="utf-8")

def profile(frame, event, argument):
    global depth
    code = frame.f_code
    if not code.co_filename.startswith(package) or code.co_name.startswith("<"):
        return
    is_class_body = not code.co_flags & 1
    if event == "call":
        if code not in seen and not is_class_body:
            seen.add(code)
            print(depth, code.co_filename.removeprefix(package), code.co_qualname, file=lines)
        depth += 1
    elif event == "return":
        depth -= 1

def leave(status):
    raise SystemExit(status)

os._exit = leave
sys.argv = ["rni", *arguments]
sys.setprofile(profile)
try:
    runpy.run_module("rni", run_name="__main__")
except SystemExit:
    pass
finally:
    sys.setprofile(None)
    lines.close()
"""


def imports_between_packages(package: Path = PACKAGE) -> Counter[tuple[str, str]]:
    """Count the imports of each package from each other package."""
    counts: Counter[tuple[str, str]] = Counter()
    for path in package.rglob("*.py"):
        own = path.relative_to(package).parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("rni"):
                continue
            _, _, module = (node.module or "").partition("rni.")
            names = [module] if module else [alias.name for alias in node.names]
            for name in names:
                target = name.split(".")[0]
                if own in PACKAGES and target in PACKAGES and target != own:
                    counts[own, target] += 1
    return counts


def import_graph(counts: Counter[tuple[str, str]]) -> str:
    """Return the graph as SVG: packages from top to bottom, and an arc for each pair that is connected by imports.

    Arcs on the left go from a package up to one that it imports. An arc on the right would be an import downwards.
    """
    step, left, top = 34, 300, 24
    height = {name: top + step * number for number, name in enumerate(PACKAGES)}
    shapes = []
    for (source, target), count in sorted(counts.items()):
        start, end = height[source], height[target]
        upwards = end < start
        side = -1 if upwards else 1
        x = left - 8 if upwards else left + 110
        bend = side * min(300, 26 + 0.55 * abs(start - end))
        color = "#4c78a8" if upwards else "#d62728"
        shapes.append(
            f'<path d="M {x} {start} C {x + bend:.0f} {start}, {x + bend:.0f} {end}, {x} {end}" fill="none" '
            f'stroke="{color}" stroke-opacity="0.45" stroke-width="{min(5, 0.7 + count / 12):.1f}">'
            f"<title>{source} imports {target}: {count} times</title></path>"
        )
    for name, y in height.items():
        shapes.append(
            f'<rect x="{left - 4}" y="{y - 12}" width="112" height="24" rx="5" fill="#ffffff" stroke="#888888"/>'
            f'<text x="{left + 52}" y="{y + 5}" text-anchor="middle">{name}/</text>'
        )
    size = f'viewBox="0 0 {left + 150} {top * 2 + step * (len(PACKAGES) - 1)}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="14" role="img" '
        f'aria-label="Imports between the packages of rni">\n' + "\n".join(shapes) + "\n</svg>\n"
    )


def calls(arguments: list[str], folder: Path) -> list[tuple[int, str, str]]:
    """Run a command and return its functions in the order of their first calls: depth, file and name."""
    command = [sys.executable, "-c", TRACER, f"{PACKAGE}/", *arguments]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    lines = (folder / "trace.txt").read_text(encoding="utf-8").splitlines()
    split = (line.split(" ", 2) for line in lines)
    return [(int(depth), file, name) for depth, file, name in split]


def flow_page() -> str:
    """Return a Markdown page with the functions that each of the five main commands calls."""
    parts = [
        "---\norphan: true\n---",
        "# Flow of the main commands",
        "Each command calls these functions of rni, in the order of their first calls. Every function appears once,\n"
        "below the function that calls it first. `python docs/architecture.py` writes this page.",
    ]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "two.toml").write_text(CONFIGURATION, encoding="utf-8")
        for name, arguments in COMMANDS.items():
            called = calls(arguments, folder)
            files = {file for _, file, _ in called}
            lines = [f"{'  ' * min(depth, 12)}{qualified}  ({file})" for depth, file, qualified in called]
            parts.append(f"## rni {name}\n\n{len(called)} functions in {len(files)} files.")
            parts.append("```text\n" + "\n".join(lines) + "\n```")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    (HERE / "imports.svg").write_text(import_graph(imports_between_packages()), encoding="utf-8")
    (HERE / "flow.md").write_text(flow_page(), encoding="utf-8")
