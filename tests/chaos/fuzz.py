"""Damaged and hostile files: each is read, or refused in plain lines. Nothing hangs, fills the memory or is run.

`run` gives (what, cases, failures, remark) for each kind of file. A case is made from the seed, its kind and its number
alone, so that one that fails can be made again: `python tests/chaos/fuzz.py SEED KIND NUMBER FILE`.
"""

import io
import json
import os
import pickle
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as pack
from told import train_run
from torch import nn

from rni import InputError, TrainRun, read_run
from rni.cli.inputs import read_inputs
from rni.files import foreign, native
from rni.files.native import NetworkFile
from rni.networks.vanilla import VanillaRNN
from rni.tasks import TASKS

Row = tuple[str, int, int, str]
CASES = {"configurations": 3000, "network files": 3000, "state dicts": 1500, "arrays": 1500, "inputs": 1000}
COMMANDS = {"configurations": 20, "network files": 12, "state dicts": 6, "arrays": 6, "inputs": 6}
HANG = 60  # seconds; only to end what would not end: cases take milliseconds
ROOM = 2 * 10**9  # bytes more than before that a reader may ask for
GROWTH = 500 * 10**6  # bytes of memory that all cases together may have touched

LONG = "x" * 100_000
NAMES = ["\x1b[31mred", "two\nlines", LONG, "\u202eback", "", "ключ", "a'b\"c", "..", "self", "\x00", "\u2028"]
VALUES: list[Any] = [
    *(None, True, -1, 0, 10**30, 1.5, -0.0, 1e308, 5e-324, [], {}, [[]], "", "relu", LONG, [LONG], {"name": 5}),
    *([0.5] * 3, ["a", 1], {"a": {"b": {}}}, *NAMES),
]
TOML = [
    *("nan", "inf", "-inf", "-1", "1e400", "9" * 5000, "0x" + "F" * 6000, "1_0", "07", '""', "[]", "{}", "[[[]]]"),
    *("1979-05-27T07:32:00Z", "07:32:00", "'x'", '"\\u001b[31m"', '"two\\nlines"', f'"{LONG}"', "[" * 3000, "true"),
    *("'''\nmany\nlines'''", '"\\ud800"', "{ name = 5 }", "{ name = 'sigmoid', slope = [] }", "[0.5, 'a']", "1e-320"),
    *(f"[{', '.join(['2'] * 1000)}]", f"[{', '.join(['nan'] * 50)}]", "{ name = 'dale', name = 'x' }", "1000000"),
    *("{ mean = 1, deviation = -1 }", "'dale'", "'lowrank'", "'supports'", "'averaged'", "'proxy'", "999999999999"),
]
PLAUSIBLE = ["0.5", "1", "2", "3", "50", "0.01", "[0.5]", "[0.5, 1]", "'linear'", "'tanh'", "'adam'", "'all'"]


def run(seed: int, folder: Path) -> list[Row]:
    """All kinds in a process of its own with little memory, then some of those refused by the command line."""
    command = [sys.executable, __file__, str(seed), str(folder)]
    limited = subprocess.run(command, capture_output=True, text=True, check=False)
    if limited.returncode:
        return [("fuzzed files", sum(CASES.values()), sum(CASES.values()), f"died: {limited.stderr[-200:]}")]
    return [*(tuple(row) for row in json.loads(limited.stdout)), from_the_command_line(seed, folder)]


def in_this_process(seed: int, folder: Path, cases: dict[str, int]) -> list[Row]:
    """The same functions as the commands use, one file after the other."""
    rows = [_of_kind(seed, folder, kind, number) for kind, number in cases.items()]
    planted = canary(folder).exists()
    return [*rows, ("code in pickles", sum(cases.values()), int(planted), "none was run" if not planted else "run")]


def _of_kind(seed: int, folder: Path, kind: str, number: int) -> Row:
    make, read, suffix = KINDS[kind]
    path, failures, refused = folder / f"case{suffix}", [], 0
    for k in range(number):
        path.write_bytes(make(rng(seed, kind, k), folder))
        reason, answer = judged(partial(read, path))
        refused += answer is not None
        if reason:
            failures.append(f"{kind} {k}: {reason}")
    path.unlink(missing_ok=True)
    return kind, number, len(failures), "; ".join(failures[:3]) or f"{refused} refused, {number - refused} read"


def rng(seed: int, kind: str, number: int) -> random.Random:
    return random.Random(f"{seed}/{kind}/{number}")


class Hang(BaseException):
    """Raised by the alarm; nothing that reads files catches it."""


def judged(read: Callable[[], object]) -> tuple[str | None, InputError | None]:
    """What is wrong with the answer to a file, if anything, and the refusal, if it was one."""

    def ring(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(HANG)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read()
    except InputError as error:
        lines = str(error).split("\n")
        if not all(line.isprintable() and 0 < len(line) < 2000 for line in lines) or len(lines) > 25:
            return f"a message of {len(lines)} lines, {len(str(error))} characters", error
        if not all("allowed: " in line or "no such file" in line for line in lines):
            return f"does not say what is allowed: {lines[0][:200]}", error
        return None, error
    except (Exception, Hang, SystemExit) as error:
        return f"{type(error).__name__} {' '.join(str(error).split())[:200]}", None
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return None, None


def from_the_command_line(seed: int, folder: Path) -> Row:
    """Some that are refused, as a user meets them: exit code 2, lines that begin `rni: `, no traceback."""
    valid, failures, total = folder / "valid.safetensors", [], 0
    valid.write_bytes(networks()[0])
    for kind, wanted in COMMANDS.items():
        make, read, suffix = KINDS[kind]
        path, k, done = folder / f"case{suffix}", 0, 0
        while done < wanted:
            k += 1
            path.write_bytes(make(rng(seed, kind, k), folder))
            if judged(partial(read, path))[1] is None:
                continue
            done += 1
            arguments = {"configurations": ["train", str(path)]}.get(kind, ["analyze", str(path)])
            if kind == "inputs":
                arguments = ["simulate", str(valid), "--inputs", str(path), "--out", str(folder / "y.npy")]
            command = [sys.executable, "-c", "from rni.cli import main; main()", *arguments]
            ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=10 * HANG)
            lines = ended.stderr.splitlines()
            if ended.returncode != 2 or not lines or not all(line.startswith("rni: ") for line in lines):
                failures.append(f"{kind} {k}: exit code {ended.returncode}, {ended.stderr[-200:]!r}")
        total += done
    return "commands", total, len(failures), "; ".join(failures[:3]) or "exit code 2, no traceback"


def canary(folder: Path) -> Path:
    return folder / "canary"


class Trap:
    """Unpickling it makes the canary."""

    def __init__(self, folder: Path):
        self.place = str(canary(folder))

    def __reduce__(self):
        return os.mkdir, (self.place,)


def damaged(r: random.Random, content: bytes) -> bytes:
    """A few bits flipped, or bytes cut, doubled, moved, replaced or left out."""
    data = bytearray(content)
    for _ in range(r.choice((1, 1, 1, 3, 20))):
        a, b = sorted(r.randrange(len(data) + 1) for _ in range(2))
        b = min(b, a + r.choice((1, 4, 50)))
        match r.randrange(6):
            case 0 | 1 if data:
                data[r.randrange(len(data))] ^= 1 << r.randrange(8)
            case 2:
                del data[a:]
            case 3:
                data[a:a] = data[a:b]
            case 4:
                del data[a:b]
            case _:
                data[a:b] = r.randbytes(b - a)
        if not data:
            break
    return bytes(data)


# configurations


@cache
def configurations() -> tuple[str, ...]:
    raw: dict[str, Any] = {"seed": 3, "task": {"decays": [0.9, 0.8], "scales": [1.0, 2.0]}, "network": {"neurons": 20}}
    activation = {"name": "sigmoid", "slope": 5.0, "threshold": {"mean": 0.1, "deviation": 0.02}}
    variants = [
        {"training": {"steps": 3, "correlation": [1.0, 0.5, 0.2]}},
        {"network": {"neurons": 20, "activation": activation, "weights": {"name": "dale", "inhibitory": 0.3}}},
        {"network": {"neurons": 20, "weights": "lowrank"}, "training": {"loss": "proxy", "points": 8, "steps": 3}},
        {"network": {"neurons": 20, "vectors": {"name": "supports", "kind": "overlap"}, "initial_radius": 0.2}},
    ]
    minimal = '[task]\ndecays = [0.9]\n[network]\nneurons = 20\nactivation = "relu"\n[training]\nsteps = 3\n'
    whole = [train_run(raw | variant).to_toml() for variant in variants]
    return (minimal, *(re.sub(r"\n\s*(?=[\d\]])", " ", text) for text in whole))  # an array in a line


def make_configuration(r: random.Random, folder: Path) -> bytes:
    lines = r.choice(configurations()).splitlines()
    at = r.randrange(len(lines))
    match r.randrange(6):
        case 0:
            return damaged(r, "\n".join(lines).encode())
        case 1:
            lines.insert(at, r.choice(lines))
        case 2:
            key = r.choice([json.dumps(name) for name in NAMES] + ["a." * r.choice((10, 300, 3000)) + "b", "size"])
            lines.insert(at, f"{key} = {r.choice(TOML)}")
        case 3:
            deep = "[" + "a." * 900 + "b]"
            lines.insert(
                at, r.choice(("[task]", "[x]", "[[network]]", "[network.activation]", deep, "a=" + "{a=" * 500))
            )
        case _:
            at = r.choice([k for k, line in enumerate(lines) if "=" in line])
            name = lines[at].split("=")[0]
            lines[at] = f"{name} = {r.choice(r.choice((TOML, PLAUSIBLE)))}"
    text = "\n".join(lines)
    return text.encode(errors="surrogatepass") if r.random() < 0.95 else damaged(r, text.encode(errors="replace"))


def read_configuration(path: Path) -> None:
    specification = read_run(path)
    specification.key()
    if not isinstance(specification, TrainRun):
        return
    specification.require_memory()
    large = specification.network.neurons * max(
        getattr(specification.training.loss, "duration", 1), len(specification.task.decays)
    )
    if large <= 10_000 or specification.network.neurons == 1_000_000:
        specification.build()


# network files


@cache
def networks() -> tuple[bytes, ...]:
    """Files of every form of W and kind of parameter."""
    sigmoid = {"name": "sigmoid", "threshold": {"mean": 0.0, "deviation": 1.0}}
    parts = [
        {"activation": sigmoid, "initial_radius": 0.5},
        {"weights": "dale", "initial_radius": 0.5, "precision": "float64"},
        {"weights": "lowrank"},
    ]
    made = []
    for part in parts:
        raw = {"task": {"decays": [0.9, 0.8]}, "network": {"neurons": 12, **part}}
        net = train_run(raw).build()
        tensors = native.network_tensors(net) | {"losses": torch.ones(4, dtype=torch.float64)}
        header: dict[str, Any] = {
            "format": native.FORMAT,
            "activation": net.f.config(),
            "specification": raw,
            "leak": net.leak,
        }
        tensors |= {f"activation.{name}": values for name, values in net.f.values().items()}
        header["task"] = TASKS.config(net.task)
        made.append(pack({k: v.detach().contiguous() for k, v in tensors.items()}, {"rni": json.dumps(header)}))
    return tuple(made)


def make_network(r: random.Random, folder: Path) -> bytes:
    content = r.choice(networks())
    size = struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    match r.randrange(8):
        case 0:
            return damaged(r, content)
        case 1:
            return content[:8] + damaged(r, content[8 : 8 + size]) + data
        case 2:
            announced = r.choice((0, 1, size - 1, size + 1, 2**32, 2**63, 2**64 - 1, len(content)))
            return struct.pack("<Q", announced) + content[8:]
        case 3 | 4:
            ours = json.loads(header["__metadata__"]["rni"])
            _spoil(r, ours)
            header["__metadata__"]["rni"] = json.dumps(ours)
        case 5:
            texts = ("", "{", "[]", "5", "null", "[" * 10**5, "9" * 5000, '{"format": NaN}', "\x00", LONG)
            header["__metadata__"] = r.choice(({"rni": r.choice(texts)}, {}, [], 5, None, {"rni": 5}, {"rni": {}}))
        case _:
            _spoil_tensors(r, header)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def _spoil(r: random.Random, table: dict[str, Any]) -> None:
    """Replace, remove or add something, anywhere inside."""
    while True:
        key = r.choice([*table, "new"])
        inside = table.get(key)
        if not (isinstance(inside, dict) and inside and r.random() < 0.7):
            break
        table = inside
    match r.randrange(4):
        case 0:
            table.pop(key, None)
        case 1:
            table[r.choice(NAMES)] = r.choice(VALUES)
        case _:
            table[key] = r.choice([*VALUES, float("nan"), float("inf"), 10**400])


def _spoil_tensors(r: random.Random, header: dict[str, Any]) -> None:
    names = [name for name in header if name != "__metadata__"]
    name = r.choice(names)
    entry = header[name]
    match r.randrange(7):
        case 0:
            entry["data_offsets"] = header[r.choice(names)]["data_offsets"]
        case 1:
            entry["data_offsets"] = r.choice(([0, 2**62], [-1, 4], [8, 0], [0], [], "x", None, [0, 0], [2**64, 2**65]))
        case 2:
            giants = ([2**62, 4], [0, 2**40], [2**31, 2**33])
            entry["shape"] = r.choice((*giants, [-1], [], [1] * 70, [12], [144], [6, 24], None, [1.5], ["a"]))
        case 3:
            kinds = ("F16", "BF16", "F32", "F64", "I8", "I32", "I64", "U8", "BOOL", "C64", "F8_E4M3", "X", "", 5, None)
            old, entry["dtype"] = entry["dtype"], r.choice(kinds)
            if {old, entry["dtype"]} in ({"F32", "I32"}, {"F64", "I64"}):
                return
            # the same bytes as other numbers: as many of them as there are
            width = {"16": 2, "32": 4, "64": 8, "I8": 1, "U8": 1}.get(str(entry["dtype"])[-2:], 1)
            a, b = entry["data_offsets"]
            entry["shape"] = [(b - a) // width]
        case 4:
            header[r.choice([*NAMES, *names, "signs", "recurrent", "recurrent_left", "activation.slope", "room"])] = (
                header.pop(name)
            )
        case 5:
            header[name] = r.choice(VALUES)
        case _:
            header.setdefault("tolerance", {"dtype": "F64", "shape": [0, 2**50], "data_offsets": [0, 0]})


def read_network(path: Path) -> None:
    found = native.read(path)
    assert isinstance(found, NetworkFile)
    with torch.no_grad():
        found.network.outputs(torch.zeros(1, 2, found.network.channels, dtype=found.network.dtype))
    foreign.read(path)


# state dicts


def odd_tensors(r: random.Random, folder: Path) -> Any:
    eye = torch.eye(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        choices: list[Callable[[], Any]] = [
            *(lambda: 5, lambda: "text", lambda: None, lambda: [1.0], dict, lambda: {"a": eye}, lambda: LONG),
            *(lambda: eye.half(), lambda: eye.bfloat16(), lambda: eye.int(), lambda: eye.bool(), lambda: eye * 1j),
            *(lambda: eye.to_sparse(), lambda: eye.to_sparse_csr(), lambda: eye.to("meta"), lambda: eye * torch.nan),
            *(lambda: torch.zeros(0), lambda: torch.zeros(()), lambda: torch.zeros(2, 1, 1, 3, 1), lambda: eye[:, :4]),
            *(lambda: torch.zeros(1).expand(10**6, 10**6), lambda: torch.zeros(0, 10**9), lambda: eye.double()),
            *(lambda: torch.quantize_per_tensor(eye, 0.1, 0, torch.qint8), lambda: eye.to(torch.float8_e4m3fn)),
            *(lambda: torch.zeros(1).expand(10**6), lambda: torch.zeros(15, 5), lambda: {1: 2}, lambda: torch.float32),
        ]
        return r.choice(choices)()


def make_state_dict(r: random.Random, folder: Path) -> bytes:
    torch.manual_seed(r.randrange(100))
    saved: Any = dict(nn.ModuleDict({"rnn": nn.RNN(2, 5), "readout": nn.Linear(5, 2)}).state_dict())
    kind = r.randrange(7)
    if kind == 1:
        return pickle.dumps(r.choice((Trap(folder), {"weight_hh_l0": Trap(folder)}, [saved])), protocol=r.randrange(6))
    if kind in (2, 3):
        saved[r.choice([*saved, *NAMES])] = odd_tensors(r, folder)
    if kind == 4:
        alike = ("rnn.weight_hh_l1", f"{LONG}.weight_hh_l0", "\n.weight_hh", f"weight_hh_l{'9' * 5000}")
        saved[r.choice([*NAMES, *alike, 5, None, (1, 2), b"a", 1.5])] = saved.pop(r.choice(list(saved)))
    if kind == 5:
        nested = ({"model": saved}, {"a": saved, "b": saved}, {"a": {"b": saved}}, [saved], (saved,))
        saved = r.choice((*nested, None, 5, {}))
    if kind == 6:
        saved[r.choice(list(saved))] = Trap(folder)
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save(saved, buffer, _use_new_zipfile_serialization=r.random() < 0.8)
    content = buffer.getvalue()
    return damaged(r, content) if kind == 0 else content


def read_any(path: Path) -> None:
    found = foreign.read(path)
    if isinstance(found, VanillaRNN):
        for _ in found.steps(torch.zeros(1, 2, found.channels)):
            pass


# arrays and inputs


def odd_arrays(r: random.Random, folder: Path) -> Any:
    eye = np.eye(5)
    return r.choice(
        [
            *(eye * 1j, eye.astype(">f8"), eye.astype("f2"), eye.astype("g"), eye.astype(int), eye > 0, eye * np.nan),
            *(np.array("text"), np.array(["a", "b"]), np.array(b"x"), np.zeros(3, "M8[s]"), np.zeros(2, "i4,f8")),
            *(
                np.array(3),
                np.zeros((2, 1, 1, 3, 1)),
                np.zeros(0),
                np.zeros((0, 10**9)),
                np.zeros((5, 0)),
                eye[:, ::-1],
            ),
            *(np.array([None, 1], dtype=object), np.array([Trap(folder)], dtype=object), np.zeros((5, 5), dtype="u8")),
            *(np.array(LONG), np.array("\x1b[31m\n"), np.full((5, 2), 1e300), np.zeros((3, 4, 2)), np.zeros((4, 2))),
        ]
    )


def npy(r: random.Random, array: np.ndarray, spoilt: bool) -> bytes:
    """An .npy file, with a header that announces something else if `spoilt`."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=True)
    if not spoilt:
        return buffer.getvalue()
    shapes = [(10**9,), (10**12,), (10**30,), (-1,), ("a",), (0, 10**30), None, (10**6, 10**6, 10**6, 10**6)]
    kinds = ["|O", "<f3", "|V1000000000", "?", [("a", "<f8")]]
    announced = {"descr": "<f8", "fortran_order": False, "shape": (5, 2)}
    announced |= {"shape": r.choice(shapes)} if r.random() < 0.5 else {"descr": r.choice(kinds)}
    others = ("{}", "[" * 5000, "5", "\x00", "__import__('os').abort()", "(" * 3000 + "1")
    header = (repr(announced) if r.random() < 0.7 else r.choice(others)).encode()
    data = array.tobytes() if array.dtype != object else b""
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def make_arrays(r: random.Random, folder: Path) -> bytes:
    rs = np.random.default_rng(r.randrange(100))
    w, u, d = rs.normal(size=(5, 5)) / 5, rs.normal(size=(5, 2)), rs.normal(size=(5, 2))
    sets: list[dict[str, Any]] = [
        {"recurrent": w, "encoders": u, "decoders": d, "activation": np.array("relu"), "decays": np.array([0.9, 0.8])},
        {"recurrent": abs(w), "signs": np.ones(5), "input_weights": u, "activation": np.array("tanh"), "bias": d[:, 0]},
        {"recurrent_left": u, "recurrent_right": d, "encoders": u, "activation": np.array("sigmoid"), "slope": d[:, 0]},
        {"activity": rs.normal(size=(3, 9, 5)), "inputs": rs.normal(size=(3, 9, 2))},
    ]
    arrays = r.choice(sets)
    kind, name = r.randrange(6), r.choice(list(arrays))
    if kind in (1, 2):
        arrays[r.choice([*arrays, "offset", "scales", "threshold", "tolerance", "room", "bias"])] = odd_arrays(
            r, folder
        )
    if kind == 3:
        arrays[r.choice([*NAMES, "decays", "signs", "bias", "activation", "weight_hh_l0"])] = arrays.pop(name)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED if r.random() < 0.3 else zipfile.ZIP_STORED) as file:
        for key, value in arrays.items():
            file.writestr(
                f"{key[:60_000]}.npy".replace("\x00", "0"), npy(r, np.asarray(value), kind == 4 and key == name)
            )
    content = buffer.getvalue()
    return damaged(r, content) if kind == 0 else content


def make_inputs(r: random.Random, folder: Path) -> bytes:
    kind = r.randrange(4)
    array = odd_arrays(r, folder) if kind == 1 else np.random.default_rng(r.randrange(100)).normal(size=(3, 7, 2))
    if kind == 3:
        return r.choice((b"", b"PK\x03\x04", pickle.dumps(Trap(folder)), make_arrays(r, folder), r.randbytes(200)))
    content = npy(r, np.asarray(array), kind == 2)
    return damaged(r, content) if kind == 0 else content


def read_signals(path: Path) -> None:
    read_inputs(path, 2)


Make = Callable[[random.Random, Path], bytes]
KINDS: dict[str, tuple[Make, Callable[[Path], None], str]] = {
    "configurations": (make_configuration, read_configuration, ".toml"),
    "network files": (make_network, read_network, ".safetensors"),
    "state dicts": (make_state_dict, read_any, ".pt"),
    "arrays": (make_arrays, read_any, ".npz"),
    "inputs": (make_inputs, read_signals, ".npy"),
}


def _with_little_memory(seed: int, folder: Path) -> list[Row]:
    torch.set_num_threads(1)
    in_this_process(seed, folder, dict.fromkeys(CASES, 3))  # everything is imported now
    used = 1024 * int(Path("/proc/self/status").read_text(encoding="utf-8").split("VmSize:")[1].split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, -1))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rows = in_this_process(seed, folder, CASES)
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    return [
        *rows,
        ("memory", sum(CASES.values()), int(grown > GROWTH), f"at most {grown / 1e6:.0f} MB more than before"),
    ]


if __name__ == "__main__":
    if len(sys.argv) > 3:
        given, kind, number, path = sys.argv[1:]
        Path(path).write_bytes(KINDS[kind][0](rng(int(given), kind, int(number)), Path(path).parent))
    else:
        print(json.dumps(_with_little_memory(int(sys.argv[1]), Path(sys.argv[2]))))
