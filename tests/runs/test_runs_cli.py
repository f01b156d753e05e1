import json
import subprocess
import sys

import pytest
from told import train_run
from typer.testing import CliRunner

from rni import InputError, read_run
from rni.cli.runs import app
from rni.runs import store as module
from rni.runs.store import Store

RAW = {"task": {"decays": [0.9]}, "network": {"neurons": 20}, "training": {"steps": 3}}


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path)
    for seed in range(3):
        store.compute(train_run(RAW | {"seed": seed}))
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
    assert read_run(tmp_path / "run.toml").key() == key


def test_remove_takes_the_named_runs_and_all_takes_the_rest(store):
    first, *others = [entry.key for entry in store.entries()]
    rni_runs("remove", first[:8], "--store", store.root)
    assert {entry.key for entry in store.entries()} == set(others)
    with pytest.raises(InputError, match="--all"):
        rni_runs("remove", "--all", "--store", store.root, answer="n\n")
    with pytest.raises(InputError, match="--all"):
        rni_runs("remove", "--all", "--store", store.root)
    assert len(store.entries()) == 2
    assert "Remove all 2 runs" in rni_runs("remove", "--all", "--store", store.root, answer="y\n")
    assert store.entries() == []
    rni_runs("remove", "--all", "--force", "--store", store.root)


@pytest.mark.parametrize("arguments", [["show", "zz"], ["remove", "zz"], ["remove"], ["remove", "zz", "--all"]])
def test_a_wrong_key_is_answered_with_what_is_allowed_and_removes_nothing(store, arguments):
    with pytest.raises(InputError):
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


def test_runs_with_the_same_line_are_followed_by_the_fields_that_differ(store):
    store.compute(train_run(RAW | {"training": {"steps": 3, "batch": 7}}))
    lines = [line for line in rni_runs("list", "--store", store.root).splitlines() if "seed 0" in line]
    assert sum("training.loss.batch 7" in line for line in lines) == 1
    assert sum("training.loss.batch" in line for line in lines) == 2
    assert "neurons" not in "".join(lines)


def test_a_label_cannot_send_escape_sequences_to_the_terminal(store):
    entry = store.entries()[0]
    header = json.loads((entry.path / "header").read_text().splitlines()[1])
    header["label"] = "\x1b[2J\x1b]0;title\x07"
    header["specification"]["network"]["activation"]["name"] = "\x1b[31m"
    header["origin"]["rni"] = "\x1b[31m"
    module._write_checked(entry.path / "header", header)
    assert "\x1b" not in rni_runs("list", "--store", store.root)
    assert "\x1b" not in rni_runs("show", entry.key, "--store", store.root)
    assert "\x1b" not in rni_runs("remove", entry.key, "--store", store.root)


def test_show_names_the_versions_and_the_network_file(store):
    entry = store.entries()[0]
    shown = rni_runs("show", entry.key, "--store", store.root)
    assert all(value in shown for value in entry.origin.values())
    assert str(store.path(entry.key)) in shown
