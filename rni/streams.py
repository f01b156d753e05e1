"""Random numbers by seed and purpose: drawing more for one purpose leaves the others as they are."""

import hashlib

from torch import Generator


def stream(seed: int, purpose: str) -> Generator:
    """The generator of one purpose, e.g. "vectors"."""
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return Generator().manual_seed(int.from_bytes(digest[:8], "little", signed=True))
