"""The type of a file, from its first bytes or its directory, for messages about files meant for another command.

At most 1 MB of a file is read, and its text is never parsed, so that a file from anywhere can be looked at.
"""

import io
import json
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

MAX_HEADER = 1_000_000  # bytes of the header of a safetensors file; that of a network has some hundreds
MAX_DIRECTORY = 1_000_000  # bytes of the directory of a zip file, about 100 for each member
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
    """Return the type of a file: a key of `CALLED`, or a name of its own.

    The result is empty if the type is unknown or the file cannot be read.
    """
    try:
        if not path.is_file():  # reading a pipe would block
            return ""
        with path.open("rb") as file:
            start = file.read(4096)
            if not start:
                return "empty"
            if start[8:9] == b"{":
                return _safetensors_kind(file, start)
            if start.startswith(b"PK"):
                return _zip_kind(file)
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return ""
    if path.suffix == ".onnx":
        return "onnx"
    for magic, name in MAGIC.items():
        if start.startswith(magic):
            return name
    return _text_kind(start, path.suffix)


def called(path: Path) -> str:
    """Return the type of a file with its article: `a network file`."""
    name = kind(path)
    return CALLED.get(name, f"a {name}" if name else "of no known kind")


def open_zip(file: BinaryIO) -> zipfile.ZipFile:
    """Open a zip file whose directory has at most 1 MB.

    Raises
    ------
    zipfile.BadZipFile
        The file is no zip file, or its directory is larger.
    """
    return zipfile.ZipFile(_BoundedReads(file))


class _BoundedReads(io.RawIOBase):
    """A file of which at most `MAX_DIRECTORY` bytes are read at once: zipfile reads a directory in one piece.

    The size in the directory's own record is not checked, since a file may hold several that contradict each other.
    """

    def __init__(self, file: BinaryIO):
        self.file = file

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(MAX_DIRECTORY + 1 if size < 0 else min(size, MAX_DIRECTORY + 1))
        if len(data) > MAX_DIRECTORY:
            raise zipfile.BadZipFile(f"a directory of more than {MAX_DIRECTORY} bytes")
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True


def _safetensors_kind(file: BinaryIO, start: bytes) -> str:
    """Return the kind that the format in the header of a safetensors file names."""
    size = int.from_bytes(start[:8], "little")
    if size > MAX_HEADER:
        return "safetensors"
    file.seek(8)
    with suppress(ValueError, LookupError, TypeError, RecursionError):  # the header of another program
        header = json.loads(file.read(size))
        written = json.loads(header["__metadata__"]["rni"])["format"]
        return next((name for name in SAFETENSORS if f"rni-{name}/" in written), "safetensors")
    return "safetensors"


def _zip_kind(file: BinaryIO) -> str:
    with open_zip(file) as archive:
        names = archive.namelist()
    if any(name.endswith("data.pkl") for name in names):
        return "state dict"
    return "arrays" if any(name.endswith(".npy") for name in names) else "zip"


def _text_kind(start: bytes, suffix: str) -> str:
    try:
        text = start.decode()
    except UnicodeDecodeError as error:
        if error.end < len(start) or len(start) - error.start > 3:  # not a character that is cut at the end
            return ""
        text = start[: error.start].decode()
    if "\0" in text:
        return ""
    if text.lstrip().lower().startswith(("<!doctype", "<html")):
        return "page"
    return "configuration" if suffix == ".toml" else "text"
