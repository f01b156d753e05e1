import json
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from told import train_run

from rni import InputError
from rni.papers import Profile
from rni.papers.fanthomme2021 import PAPER
from rni.papers.fanthomme2021.figures import fig1, fig4
from rni.papers.figure import PROFILES
from rni.papers.reproduce import measure, reproduce
from rni.runs.engine import local
from rni.runs.run import TrainRun

TINY = Profile("tiny", neurons=60, quick=True)


def test_every_module_is_listed_as_a_figure():
    folder = Path(fig1.__file__).parent
    assert set(PAPER.titles()) == {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert list(PAPER.titles())[:3] == ["fig1", "fig2", "linear"]


def test_an_unknown_figure_is_answered_with_the_known_ones():
    with pytest.raises(InputError) as error:
        PAPER.select(["fig44"])
    assert (error.value.field, error.value.value, error.value.hint) == ("figure", "fig44", "fig4")
    assert error.value.allowed == ", ".join(PAPER.titles())
    assert PAPER.select(["fig4", "fig1"]) == ["fig1", "fig4"]
    assert PAPER.select([]) == list(PAPER.titles())


class Mortal(Executor):
    """Computes here; the worker dies so often before it measures a figure."""

    def __init__(self, deaths=0):
        self.deaths = deaths

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        if fn is measure and self.deaths:
            self.deaths -= 1
            future.set_exception(BrokenProcessPool("died"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_results_do_not_depend_on_the_number_of_workers(tmp_path):
    reports = tmp_path / "here", tmp_path / "two workers"
    for report, executor in zip(reports, (Mortal(), local(2)), strict=True):
        with executor:
            reproduce(PAPER, ["fig1", "fig4"], TINY, report, executor, report.with_suffix(".store"))
    one, two = (json.loads((report / "claims.json").read_text(encoding="utf-8")) for report in reports)
    assert one == two
    of_fig4 = {f"fig4.{name}" for name in ("linear", "signs", "alignment", "amplitude")}
    assert {claim["id"] for claim in one} == {"fig1.target", *of_fig4}
    for name in ("fig4.npz", "fig4.png", "fig4.svg"):
        assert (reports[0] / name).read_bytes() == (reports[1] / name).read_bytes()


def diverging(profile: Profile) -> list[TrainRun]:
    raw = {"task": {"decays": [0.9]}, "network": {"neurons": 20}, "training": {"learning_rate": 500.0, "steps": 50}}
    return [train_run(raw)]


def test_a_run_that_diverges_is_a_red_line_and_not_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(fig4, "runs", diverging)
    outcomes, page = reproduce(PAPER, ["fig1", "fig4"], TINY, tmp_path / "report", Mortal(), tmp_path / "store")
    assert [outcome.failure[:18] for outcome in outcomes] == ["", "1 of 1 runs failed"]
    assert "training diverged at step 1" in page.read_text(encoding="utf-8")


def test_a_figure_that_cannot_be_drawn_keeps_its_measurements_and_verdicts(tmp_path, monkeypatch):
    def undrawable(measured):
        raise ValueError("no such colour")

    monkeypatch.setattr(fig1, "draw", undrawable)
    (outcome,), _ = reproduce(PAPER, ["fig1"], TINY, tmp_path / "report", Mortal(), tmp_path / "store")
    assert outcome.failure == "ValueError: no such colour"
    assert [
        claim["verdict"] for claim in json.loads((tmp_path / "report" / "claims.json").read_text(encoding="utf-8"))
    ] == ["reproduced"]


def test_the_runs_of_a_figure_are_listed_once(tmp_path, monkeypatch):
    asked = []

    def counted(profile):
        asked.append(profile)
        return diverging(profile)

    monkeypatch.setattr(fig4, "runs", counted)
    reproduce(PAPER, ["fig4"], TINY, tmp_path / "report", Mortal(), tmp_path / "store")
    assert asked == [TINY]


def test_repetitions_by_profile():
    quick, paper, full = PROFILES.values()
    assert [profile.seeds(8) for profile in (quick, paper, full)] == [2, 8, 8]
    assert [profile.seeds(8, few=4) for profile in (quick, paper, full)] == [2, 4, 8]
    assert [profile.seeds(8, few=4, quick=1) for profile in (quick, paper, full)] == [1, 4, 8]
    for figure in map(PAPER.figure, PAPER.titles()):
        runs, more = ({each.key() for each in figure.runs(profile)} for profile in (paper, full))
        assert runs <= more
    assert len(list(PAPER.figure("table1").runs(full))) == 12 * 8 + 8 * 8 + 4 * 4  # ours, theirs


def test_a_report_that_cannot_be_written_is_refused_before_any_run(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError):
        reproduce(PAPER, ["fig4"], TINY, tmp_path / "file", Mortal(), tmp_path / "store")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(("deaths", "failure"), [(1, ""), (2, ""), (3, "the worker process died, with this figure")])
def test_a_figure_is_measured_again_when_its_worker_dies(tmp_path, deaths, failure):
    (outcome,), _ = reproduce(PAPER, ["fig1"], TINY, tmp_path / "report", Mortal(deaths), tmp_path / "store")
    assert outcome.failure[: len(failure) or None] == failure
