"""Two reproductions on one store at the same time: the same claims, and each run is computed once."""

from pathlib import Path

from tests.chaos import _help

ROUNDS = 3


def run(seed: int, folder: Path) -> list[tuple[str, int, int, str]]:
    failures, computed = [], set()
    for case in range(ROUNDS):
        place = folder / str(case)
        one, two = place / "one", place / "two"
        for each in (one, two):
            each.mkdir(parents=True)
        log = place / "log"
        both = [_help.start(_help.reproduce(each, place / "store"), LOG=log) for each in (one, two)]
        codes = [_help.finish(process)[0] for process in both]
        begun = log.read_text(encoding="utf-8").split()
        computed.add(len(begun))
        if codes != [0, 0] or len(set(begun)) != len(begun):
            failures.append(f"{codes}, {len(begun)} computed, {len(set(begun))} different")
        if (one / "report" / "claims.json").read_bytes() != (two / "report" / "claims.json").read_bytes():
            failures.append("claims differ")
        failures += _help.left_over(place)
    remark = "; ".join([f"{computed.pop()} runs, each computed once", *failures])
    return [("two reproductions on one store", ROUNDS, len(failures), remark)]
