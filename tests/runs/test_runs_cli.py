import os
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from rni import InputError, Specification
from rni.cli.runs import app
from rni.runs import progress
from rni.runs.progress import reported
from rni.runs.store import Store

RAW = {"task": {"decays": [0.9]}, "network": {"neurons": 20}, "training": {"steps": 3}}


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path)
    for seed in range(3):
        store.compute(Specification.parse(RAW | {"seed": seed}))
    return store


def rni_runs(*arguments, answer=None):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=answer)
    if isinstance(result.exception, InputError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_list_names_every_run(store):
    out = rni_runs("list", "--store", store.root)
    assert all(entry.key[:12] in out and entry.label in out for entry in store.entries())
    assert "3 runs" in out


def test_what_show_prints_is_the_configuration_of_the_same_run(store, tmp_path):
    key = store.entries()[0].key
    (tmp_path / "run.toml").write_text(rni_runs("show", key[:8], "--store", store.root), encoding="utf-8")
    assert Specification.from_toml(tmp_path / "run.toml").key() == key


def test_remove_takes_the_named_runs_and_all_takes_the_rest(store):
    first, *others = [entry.key for entry in store.entries()]
    rni_runs("remove", first[:8], "--store", store.root)
    assert {entry.key for entry in store.entries()} == set(others)
    with pytest.raises(InputError, match="--all: not confirmed, nothing was removed"):
        rni_runs("remove", "--all", "--store", store.root, answer="n\n")
    with pytest.raises(InputError, match="--all: not confirmed, nothing was removed"):
        rni_runs("remove", "--all", "--store", store.root)
    assert len(store.entries()) == 2
    assert "Remove all 2 runs" in rni_runs("remove", "--all", "--store", store.root, answer="y\n")
    assert store.entries() == []
    rni_runs("remove", "--all", "--force", "--store", store.root)


@pytest.mark.parametrize("arguments", [["show", "zz"], ["remove", "zz"], ["remove"], ["remove", "zz", "--all"]])
def test_a_wrong_key_is_answered_with_what_is_allowed_and_removes_nothing(store, arguments):
    with pytest.raises(InputError, match="; allowed: "):
        rni_runs(*arguments, "--store", store.root)
    assert len(store.entries()) == 3


def test_listing_and_showing_do_without_torch(store):
    script = (
        "import sys; from typer.testing import CliRunner; from rni.cli.runs import app\n"
        "for command in (['list'], ['show', sys.argv[2]]):\n"
        "    assert CliRunner().invoke(app, [*command, '--store', sys.argv[1]]).exit_code == 0\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script, store.root, store.entries()[0].key], check=True)


def listed(store, *arguments):
    """Seeds of the runs in the order listed."""
    seeds = {entry.key[:12]: entry.specification["seed"] for entry in store.entries()}
    return [seeds[line[:12]] for line in rni_runs("list", *arguments, "--store", store.root).splitlines()[:-1]]


def test_listed_runs_are_chosen_by_conditions_and_sorted_by_fields(store):
    store.compute(Specification.parse(RAW | {"seed": 7, "training": {"loss": "proxy", "steps": 1}}))
    assert listed(store, "--where", "seed >= 1 and network.neurons == 20", "--sort", "seed") == [1, 2, 7]
    assert listed(store, "--where", "training.steps < 3") == [7]
    assert listed(store, "--where", "loss == proxy") == [7]
    assert listed(store, "--where", "training.duration == 3", "--sort", "seed") == [0, 1, 2]
    assert listed(store, "--sort", "training.steps")[0] == 7
    assert "1 runs, " in rni_runs("list", "--where", "seed == 7", "--store", store.root)


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "--where", "seed"],
        ["list", "--where", "sed == 1"],
        ["list", "--sort", "sed"],
        ["prune"],
        ["prune", "--size", "2"],
        ["prune", "--size", "-1GB"],
    ],
)
def test_a_wrong_wish_is_one_line_and_removes_nothing(store, arguments):
    with pytest.raises(InputError, match="; allowed: "):
        rni_runs(*arguments, "--store", store.root)
    assert len(store.entries()) == 3


def test_prune_takes_the_oldest_by_age_or_until_little_is_left(store):
    newest, middle, oldest = store.entries()
    for age, entry in enumerate((newest, middle, oldest)):
        then = time.time() - 86_400 * (10 * age + 1)
        os.utime(entry.path, (then, then))
    assert "would remove 2 runs" in rni_runs("prune", "--older", "5", "--dry-run", "--store", store.root)
    assert len(store.entries()) == 3
    rni_runs("prune", "--older", "15", "--store", store.root)
    assert [entry.key for entry in store.entries()] == [newest.key, middle.key]
    rni_runs("prune", "--size", f"{1.5 * newest.size / 1e3}kB", "--store", store.root)
    assert [entry.key for entry in store.entries()] == [newest.key]


def test_watch_shows_what_is_computed_with_its_losses_up_to_now(store, monkeypatch):
    assert "0 running" in rni_runs("watch", "--store", store.root)
    monkeypatch.setattr(progress, "REPORT_EVERY", 0.0)
    with reported(store.root, "abc", "relu n=20", 1000) as report:
        for step in range(500):
            report(step, 100 * 0.99**step, None)
        out = rni_runs("watch", "--store", store.root)
    assert "1 running" in out
    assert "step 499/1000" in out
    assert "█" in out
    assert "▁" in out
