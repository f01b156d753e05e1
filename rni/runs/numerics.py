"""What a result depends on besides its configuration: the version of the numerics, libraries and the processor."""

import platform
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from rni.core.memory import PROCESSES, text_of

if TYPE_CHECKING:
    import torch
else:
    from rni.core.lazy import torch

NUMERICS = 8
"""The version of the numerics, a part of the key of each run.

Raise it with each change of the package after which some configuration gives another network on the same machine with
the same libraries: another order of operations, another default, other random numbers. Then results of before are
computed again. Do not raise it for new versions of Python, torch or NumPy, because each upgrade would make all stores
worthless; entries record these versions instead. `tests/runs/test_numerics.py` fails if a change of the bits of some
reference runs comes without a new number.
"""


@cache
def origin() -> dict[str, str]:
    """Return the versions and the kind of processor on which the bits of a result depend.

    Examples
    --------
    >>> sorted(origin())
    ['numpy', 'processor', 'python', 'rni', 'torch']
    """
    from rni import __version__

    return {
        "rni": __version__,
        "torch": torch.__version__,
        "numpy": version("numpy"),
        "python": platform.python_version(),
        "processor": processor(),
    }


def processor() -> str:
    """Return architecture, vendor and vector instructions, for example `x86_64 AuthenticAMD AVX512`."""
    fields = (line.partition(":") for line in text_of(PROCESSES / "cpuinfo").splitlines())
    vendors = (value.strip() for name, _, value in fields if name.strip() in ("vendor_id", "CPU implementer"))
    vendor = next(vendors, platform.processor() or "unknown vendor")
    return f"{platform.machine()} {vendor} {torch.backends.cpu.get_cpu_capability()}"


def differences(origins: list[dict[str, str]]) -> str:
    """Return which versions or processors computed the results, or an empty text if they all have the same.

    Examples
    --------
    >>> differences([{"torch": "2.12"}, {"torch": "2.13"}, {"torch": "2.13"}])
    'the results were computed with different torch: 2.12 (1), 2.13 (2)'
    """
    counts: dict[str, dict[str, int]] = {}
    for origin in origins:
        for name, value in origin.items():
            of_name = counts.setdefault(name, {})
            of_name[value] = of_name.get(value, 0) + 1
    parts = [
        f"{name}: {', '.join(f'{value} ({count})' for value, count in sorted(values.items()))}"
        for name, values in counts.items()
        if len(values) > 1
    ]
    return f"the results were computed with different {'; '.join(parts)}" if parts else ""
