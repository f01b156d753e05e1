"""The memory that a MATLAB file of version 5 or 7 takes, from its structure, before scipy reads it.

A variable of the file is a tree: structures and cell arrays contain further arrays, and a compressed variable may
unpack to a thousand times its size. Each element starts with a tag, which is the type and the number of bytes of what
follows, and is padded to 8 bytes. See "MAT-File Format" of The MathWorks.
"""

import struct
import zlib
from math import inf, prod
from typing import BinaryIO

from scipy.io.matlab import matfile_version

HEADER = 128  # bytes before the first variable
MATRIX, COMPRESSED = 14, 15  # types of elements
CELL, STRUCT, OBJECT, SPARSE, LAST_NUMERIC, FUNCTION, OPAQUE = 1, 2, 3, 5, 15, 16, 17  # classes of arrays
PIECE = 2**14  # bytes that are decompressed at once
ARRAY = 250  # bytes that numpy takes for an array, without its numbers


def memory_needed(file: BinaryIO, limit: float) -> float:
    """Return the number of bytes that the variables of a file take, or infinity where it exceeds the limit.

    Raises
    ------
    NotImplementedError
        The file is of version 7.3, which is HDF5.
    Exception
        The file is damaged.
    """
    major, _ = matfile_version(file)
    if major == 2:
        raise NotImplementedError("version 7.3")
    if major == 0:  # version 4 holds uncompressed matrices only
        return 0.0
    file.seek(0)
    content = file.read()
    order = "<" if content[126:128] == b"IM" else ">"

    needed, position = 0.0, HEADER
    while position + 8 <= len(content):
        kind, size = struct.unpack_from(f"{order}II", content, position)
        elements = _Elements(content, order, position, limit - needed)
        try:
            if kind == COMPRESSED:
                elements.content = _unpacked(content[position + 8 : position + 8 + size], limit)
                elements.position = 0
            elements.count_array()
        except _LimitExceeded:
            return inf
        needed += elements.needed
        position += 8 + size
    return needed


def _unpacked(compressed: bytes, limit: float) -> bytes:
    """Decompress a variable, after its size has been measured in pieces that are not kept."""
    unpacker, size = zlib.decompressobj(), 0
    for start in range(0, len(compressed), PIECE):
        rest = compressed[start : start + PIECE]
        while rest:
            size += len(unpacker.decompress(rest, 64 * PIECE))
            rest = unpacker.unconsumed_tail
            if size > limit:
                raise _LimitExceeded
    return zlib.decompress(compressed, bufsize=max(size, 1))


class _Elements:
    """Elements that are read one after the other from a position on, as scipy reads them."""

    needed = 0.0

    def __init__(self, content: bytes, order: str, position: int, limit: float):
        self.content, self.order, self.position, self.limit = content, order, position, limit

    def count_array(self) -> None:
        """Add the bytes that the array at this position takes, and those of all arrays in it."""
        kind, size = self.unpack("II")
        if kind != MATRIX:
            raise ValueError("not an array")
        self.add(ARRAY)
        if size == 0:
            return
        _, _, flags, _ = self.unpack("IIII")
        array_class, is_complex = flags & 0xFF, bool(flags & 0x800)
        if array_class == OPAQUE:  # its name, the system of its class, and its class, before an array
            for _ in range(3):
                self.element()
            self.count_array()
            return
        dimensions = self.element()
        count = prod(struct.unpack(f"{self.order}{len(dimensions) // 4}i", dimensions))
        self.element()  # the name

        if array_class in (CELL, STRUCT, OBJECT):
            fields = 1
            if array_class == OBJECT:
                self.element()  # the name of its class
            if array_class != CELL:
                (length,) = struct.unpack(f"{self.order}i", self.element())
                fields = len(self.element()) // length
                self.add(ARRAY * fields)
            self.add(8 * count * fields)
            for _ in range(count * fields):
                self.count_array()
        elif array_class == SPARSE:
            for _ in range(3 + is_complex):  # row indices, starts of columns, numbers
                self.add(len(self.element()))
        elif array_class <= LAST_NUMERIC:
            self.add(8 * count)
            for _ in range(1 + is_complex):
                self.element()
        elif array_class == FUNCTION:
            self.count_array()
        else:
            raise ValueError("an unknown class")

    def add(self, size: float) -> None:
        """Add bytes to those that are needed."""
        self.needed += size
        if size < 0 or self.needed > self.limit:
            raise _LimitExceeded

    def unpack(self, layout: str) -> tuple[int, ...]:
        values = struct.unpack_from(self.order + layout, self.content, self.position)
        self.position += struct.calcsize(layout)
        return values

    def element(self) -> bytes:
        """Return the data of the next element."""
        (tag,) = self.unpack("I")
        if tag >> 16:  # at most 4 bytes, which follow the tag directly
            size, start = tag >> 16, self.position
            self.position += 4
        else:
            (size,) = self.unpack("I")
            start = self.position
            self.position += size + -size % 8
        if start + size > len(self.content):
            raise ValueError("truncated")
        return self.content[start : start + size]


class _LimitExceeded(Exception):
    """The arrays of a variable need more memory than the limit."""
