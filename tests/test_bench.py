"""The benchmark's page and its history, without measuring."""

import json

import pytest

from bench import __main__ as page
from bench import busy, history, training
from bench.measuring import Ratio


def test_each_run_of_the_benchmark_adds_a_line_and_the_page_shows_the_trend(tmp_path, monkeypatch):
    values = iter([2.0, 4.0])

    class Part:
        TITLE, ABOUT = "Part", "About."

        @staticmethod
        def tables():
            return {"Table": iter(["| row |", Ratio("plain / ours", next(values))])}

    kept, results = tmp_path / "history.jsonl", tmp_path / "RESULTS.md"
    monkeypatch.setattr(page, "PARTS", {"part": Part})
    monkeypatch.setattr(page, "RESULTS", results)
    monkeypatch.setattr(history, "HISTORY", kept)
    monkeypatch.setattr("sys.argv", ["bench"])
    for _ in range(2):
        page.main()
    lines = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    assert [line["ratios"] for line in lines] == [{"plain / ours": 2.0}, {"plain / ours": 4.0}]
    assert lines[0].keys() == {"when", "commit", "machine", "load", "ratios"}
    text = results.read_text(encoding="utf-8")
    assert text.count("## Part\n") == text.count("| row |") == text.count("## Tried") == 1
    assert "| plain / ours | 2 | 2 | 4 |" in text
    assert "▁█" in text


def test_a_sparkline_goes_from_the_smallest_to_the_largest():
    assert history.sparkline([3.0, 1.0, 2.0, 5.0]) == "▅▁▃█"
    assert len(set(history.sparkline([2.0, 2.0]))) == 1


def test_each_training_that_is_measured_to_its_end_can_be_specified():
    losses = {name: training.specification(**changes).training.loss.name for name, changes in training.WHOLE.items()}
    assert losses == {name: "proxy" if name == "proxy" else "batch" for name in training.WHOLE}


@pytest.mark.slow
def test_a_training_is_timed_alone_and_beside_others(monkeypatch):
    monkeypatch.setattr(busy, "BESIDE", (0, 1))
    monkeypatch.setattr(busy, "THREADS", (1,))
    rows, _ = (list(rows) for rows in busy.tables(neurons=30, steps=5).values())
    assert [row.name for row in rows if isinstance(row, Ratio)] == [
        "a training on 1 threads beside 1 busy processes / allowed"
    ]
    assert sum(isinstance(row, str) and row.startswith("| 1 |") for row in rows) == 2
