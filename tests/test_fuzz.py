"""Damaged and hostile files: each is read, or refused in plain lines and in little memory."""

import io
import json
import struct
import subprocess
import sys
import zipfile
import zlib

import numpy as np
import pytest
import scipy.io
import torch
from chaos import fuzz

from rni import InputError
from rni.core import file_type
from rni.files import loading


def test_no_damaged_or_hostile_file_ends_in_a_traceback(tmp_path):
    """A few of the files of `make chaos`."""
    cases = {"configurations": 80, "network files": 80, "state dicts": 50, "arrays": 50, "inputs": 40}
    for what, _, failures, remark in fuzz.in_this_process(1, tmp_path, cases):
        assert failures == 0, f"{what}: {remark}"


def element(kind, data):
    """An element of a MATLAB file: its tag and its data, padded to 8 bytes."""
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def matlab(array_class, dimensions, *elements, compressed=False):
    """A MATLAB file with one array."""
    flags = element(6, struct.pack("<II", array_class, 0))
    array = element(14, flags + element(5, struct.pack("<2i", *dimensions)) + element(1, b"net") + b"".join(elements))
    if compressed:
        array = struct.pack("<II", 15, len(packed := zlib.compress(array))) + packed
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + array


def safetensors(header):
    return struct.pack("<Q", len(header)) + header


def structure(values):
    file = io.BytesIO()
    scipy.io.savemat(file, {"net": {"J": values}}, do_compression=True)
    return file.getvalue()


def arrays(**values):
    file = io.BytesIO()
    np.savez_compressed(file, **values)
    return file.getvalue()


def many_members():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(50_000):
            archive.writestr(zipfile.ZipInfo(f"{number}.npy"), b"")
    return file.getvalue()


def torch_file(value, **options):
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


EMPTY = struct.pack("<II", 14, 0)  # an array without anything
FIELD = element(5, struct.pack("<i", 8)) + element(1, b"J".ljust(8, b"\0"))
BOMBS = {
    "dots.toml": lambda: b".".join([b"a"] * 20_001) + b" = 1",
    "keys.toml": lambda: "\n".join(f"a{i:05}" + ".a" * 20 + " = 1" for i in range(19_000)).encode(),
    "deep.safetensors": lambda: safetensors(b'{"__metadata__":{"rni":"' + b"[" * 20_000_000 + b'"}}'),
    "wide.safetensors": lambda: safetensors(b'{"__metadata__":{"rni":"[' + b"[]," * 7_000_000 + b'[]]"}}'),
    "zeros.npz": lambda: arrays(recurrent=np.zeros((4500, 4500)), input_weights=np.ones((4500, 1))),
    "members.npz": many_members,
    "structure.mat": lambda: structure(np.zeros((5000, 5000))),
    "cells.mat": lambda: matlab(1, (1, 10**6), EMPTY * 10**6, compressed=True),
    "elements.mat": lambda: matlab(2, (1, 5 * 10**7), FIELD),
    "text.mat": lambda: matlab(4, (1, 10**8), element(16, b"")),
    "repeated.pt": lambda: torch_file({"weight_hh_l0": torch.ones(1).expand(10_000, 10_000)}),
    "lists.pt": lambda: torch_file([[] for _ in range(300_000)]),
    "older lists.pt": lambda: torch_file([[] for _ in range(300_000)], _use_new_zipfile_serialization=False),
}
ORDINARY = {
    "ordinary.toml": lambda: b"task.decays = [0.9]\nnetwork.neurons = 20\ntraining.steps = 1\n",
    "ordinary.npz": lambda: arrays(recurrent=np.eye(5), input_weights=np.ones((5, 1))),
    "ordinary.mat": lambda: structure(np.eye(5)),
    "ordinary.pt": lambda: torch_file(dict(torch.nn.RNN(2, 5).state_dict())),
}
PEAKS = """
import json, resource, sys
from pathlib import Path
from rni import InputError, read_run
from rni.core.file_type import kind
from rni.files import foreign

peaks = {}
for path in map(Path, sys.argv[1:]):
    try:
        kind(path)
        (read_run if path.suffix == ".toml" else foreign.read)(path)
    except InputError as error:
        pass
    peaks[path.name] = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps(peaks))
"""


def test_hostile_files_take_little_more_memory_than_ordinary_ones(tmp_path):
    for name, content in (ORDINARY | BOMBS).items():
        (tmp_path / name).write_bytes(content())
    command = [sys.executable, "-c", PEAKS, *(str(tmp_path / name) for name in (*ORDINARY, *BOMBS))]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    peaks = json.loads(output)
    before = peaks["ordinary.pt"]
    growth = {name: peaks[name] - before for name in BOMBS}
    assert max(growth.values()) < 67e6, growth


@pytest.mark.parametrize("name", [name for name in BOMBS if not name.endswith("toml")])
def test_a_hostile_file_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(BOMBS[name]())
    with pytest.raises(InputError) as caught:
        loading.load_tensors(tmp_path / name)
    assert name in str(caught.value)


@pytest.mark.parametrize("name", [name for name in ORDINARY if not name.endswith("toml")])
def test_an_ordinary_file_is_read(tmp_path, name):
    (tmp_path / name).write_bytes(ORDINARY[name]())
    assert loading.load_tensors(tmp_path / name).tensors


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("run.toml", b"task.decays = [0.9]", "configuration"),
        ("run.txt", b"task.decays = [0.9]", "text"),
        ("cut.txt", b"x" + "\u00e9".encode() * 3000, "text"),
        ("page", b" <!DOCTYPE html>", "page"),
        ("empty", b"", "empty"),
        ("net.safetensors", safetensors(b'{"__metadata__":{"rni":"{\\"format\\":\\"rni-network/3\\"}"}}'), "network"),
        ("net.safetensors", safetensors(b"{}"), "safetensors"),
        ("net.safetensors", safetensors(b'{"a":' * 5000), "safetensors"),
        ("long.safetensors", safetensors(b"{" + b" " * 2_000_000 + b"}"), "safetensors"),
        ("x.npy", b"\x93NUMPY", "array"),
        ("net.pt", b"\x80\x02", "pickle"),
        ("noise", bytes(range(256)), ""),
        ("members.npz", None, ""),
    ],
)
def test_the_type_of_a_file_is_known_from_its_start_or_its_directory(tmp_path, name, content, kind):
    (tmp_path / name).write_bytes(many_members() if content is None else content)
    assert file_type.kind(tmp_path / name) == kind
