"""Stored reference values notice when results change without a new version number.

`python tests/runs/test_numerics.py` records the references again, for this kind of processor and this version of torch.
Do this after NUMERICS or MEASURES was raised, or on a new kind of processor.
"""

import hashlib
import json
import math
from pathlib import Path

import pytest

from rni import InputError, parse_run
from rni.runs import execution
from rni.runs.measures import sources
from rni.runs.numerics import NUMERICS, differences, origin
from rni.runs.store import MEASURES

REFERENCE = Path(__file__).parent / "reference.json"
SMALL = {"task": {"decays": [0.9, 0.8]}, "network": {"neurons": 40}, "training": {"steps": 30}}
RUNS = {
    "batch": {},
    "averaged": {"network": {"neurons": 40, "activation": "linear"}, "training": {"loss": "averaged", "steps": 30}},
    "proxy": {"training": {"loss": "proxy", "steps": 30}},
    "adam": {"training": {"optimizer": "adam", "steps": 30}},
    "sigmoid": {"network": {"neurons": 40, "activation": "sigmoid"}},
    "lowrank": {"network": {"neurons": 40, "weights": "lowrank"}},
    "dale": {"network": {"neurons": 40, "weights": "dale"}},
    "radius": {"network": {"neurons": 40, "initial_radius": 0.5}},
    "large": {"network": {"neurons": 700}, "training": {"steps": 3}},
    "design": {"kind": "design", "network": {"neurons": 40}},
}
NAMES = ("loss", "steps", "steps@1", "certificate", "error", "ratio", "errors", "fitted_decays", "durations", "verdict")


def computed(name):
    raw = SMALL | RUNS[name]
    if raw.get("kind") == "design":
        del raw["training"]
    return execution.run(parse_run(raw))


def bits(name):
    """The hash of all numbers of a run."""
    result = computed(name)
    digest = hashlib.sha256(json.dumps(result.losses).encode())
    for _, tensor in sorted(result.network.state_dict().items()):
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def machine():
    return f"{origin()['processor']}, torch {origin()['torch']}"


def measured():
    """The measures of a small designed network; `seconds` are those of the machine."""
    run, trained = computed("design"), computed("batch")
    values = {}
    for which, result in (("designed", run), ("trained", trained)):
        for name, source in sources(NAMES).items():
            try:
                value = source.measure(result)
            except InputError:
                value = "cannot be measured"
            value = value.get(name, value) if isinstance(value, dict) and source.kept_as == "analysis" else value
            values[f"{which} {name}"] = json.loads(json.dumps(value, default=list))
    return values


def reference():
    return json.loads(REFERENCE.read_text(encoding="utf-8"))


def instruction(what):
    return f"{what}, then run: python tests/runs/test_numerics.py"


@pytest.mark.parametrize("name", RUNS)
def test_a_change_of_bits_comes_with_a_new_version_of_the_numerics(name):
    known = reference()["bits"].get(machine())
    if known is None:
        pytest.skip(f"no reference bits for {machine()}; record them: python tests/runs/test_numerics.py")
    assert known["numerics"] == NUMERICS, instruction("NUMERICS is new")
    assert bits(name) == known[name], instruction(
        "the bits of a run have changed: raise NUMERICS in rni/runs/numerics.py"
    )


def close(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-3, abs_tol=1e-9) or (math.isnan(one) and math.isnan(other))
    return one == other


def test_a_change_of_a_measure_comes_with_a_new_version_of_the_measures():
    known = reference()["measures"]
    assert known["version"] == MEASURES, instruction("MEASURES is new")
    values = measured()
    assert values.keys() == known["values"].keys()
    changed = {
        name: (known["values"][name], value)
        for name, value in values.items()
        if not close(known["values"][name], value)
    }
    assert not changed, instruction("measures have changed: raise MEASURES in rni/runs/store.py")


def test_the_versions_of_libraries_are_no_part_of_the_key(monkeypatch):
    key = parse_run(SMALL).key()
    monkeypatch.setattr("torch.__version__", "9.9")
    assert parse_run(SMALL).key() == key
    monkeypatch.setattr("rni.runs.run.NUMERICS", NUMERICS + 1)
    assert parse_run(SMALL).key() != key


def test_differences_are_counted():
    one, other = {"torch": "2.12", "python": "3.11"}, {"torch": "2.13", "python": "3.11"}
    assert differences([one, one]) == differences([]) == ""
    assert all(text in differences([one, other, other]) for text in ("torch", "2.12 (1)", "2.13 (2)"))
    assert "python" not in differences([one, other])


def record():
    known = reference() if REFERENCE.exists() else {"bits": {}}
    known["bits"][machine()] = {"numerics": NUMERICS} | {name: bits(name) for name in RUNS}
    known["measures"] = {"version": MEASURES, "values": measured()}
    REFERENCE.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record()
