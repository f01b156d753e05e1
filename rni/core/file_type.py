"""What a file is, from its first bytes: for messages about files that were meant for another command."""

import json
import zipfile
from contextlib import suppress
from pathlib import Path

from rni.core.toml import parse_toml

START = 1_000_000  # bytes that are looked at
MAGIC = {
    b"\x93NUMPY": "array",
    b"\x89HDF": "HDF5 file",
    b"MATLAB": "MATLAB file",
    b"\x89PNG": "picture",
    b"%PDF": "PDF file",
    b"\x80": "pickle",
}
SAFETENSORS = ("network", "snapshots", "checkpoint", "safetensors")
CALLED = {
    "network": "a network file",
    "safetensors": "a safetensors file of tensors",
    "snapshots": "snapshots of a training",
    "checkpoint": "the checkpoint of a training",
    "configuration": "a configuration",
    "array": "an array, as numpy.save writes it",
    "arrays": "arrays, as numpy.savez writes them",
    "state dict": "a file of torch.save",
    "empty": "an empty file",
    "text": "a text",
    "pickle": "a pickle",
    "zip": "a zip file",
    "HDF5 file": "an HDF5 file",
    "onnx": "an ONNX graph",
}


def kind(path: Path) -> str:
    """A key of `CALLED`, or a name of its own; empty where the file is of no known kind, or can't be read."""
    with suppress(Exception):  # whatever a file holds, looking at it is not what fails
        if not path.is_file():  # a pipe would be waited for
            return ""
        with path.open("rb") as file:
            start = file.read(START)
        if not start:
            return "empty"
        if start[8:9] == b"{":
            return _safetensors(start)
        if start.startswith(b"PK"):
            return _packed(path)
        if path.suffix == ".onnx":
            return "onnx"
        return next((known for magic, known in MAGIC.items() if start.startswith(magic)), None) or _text(start)
    return ""


def called(path: Path) -> str:
    """What to say of a file: `a network file`."""
    found = kind(path)
    return CALLED.get(found, f"a {found}" if found else "of no known kind")


def _safetensors(start: bytes) -> str:
    """By the format in its header."""
    header = json.loads(start[8 : 8 + int.from_bytes(start[:8], "little")])
    ours = json.loads(header.get("__metadata__", {}).get("rni", "{}")).get("format", "")
    return next((known for known in SAFETENSORS if f"rni-{known}/" in ours), "safetensors")


def _packed(path: Path) -> str:
    with zipfile.ZipFile(path) as packed:
        names = packed.namelist()
    torch, numpy = (any(name.endswith(ending) for name in names) for ending in ("data.pkl", ".npy"))
    return "state dict" if torch else "arrays" if numpy else "zip"


def _text(start: bytes) -> str:
    text = start.decode()
    if "\0" in text:
        return ""
    with suppress(ValueError, RecursionError):
        if parse_toml(text).keys() & {"seed", "task", "network", "training"}:
            return "configuration"
    return "page" if text.lstrip().lower().startswith(("<!doctype", "<html")) else "text"
