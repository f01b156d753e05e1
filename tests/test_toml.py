"""TOML text is parsed in little memory and time, whatever it holds."""

import time
import tomllib
import tracemalloc
from pathlib import Path

import pytest

from rni import InputError, read_run
from rni.cli import lists
from rni.core import file_type
from rni.core.toml import MAX_DOTS, parse_toml


def key(dots, part="a", dot="."):
    return dot.join([part] * (dots + 1))


FORMS = [
    "{} = 1",
    "x = 1.5\n  {} = 1",
    "[{}]\nx = 1",
    "[[{}]]\nx = 1",
    "x = {{ y = 2, {} = 1 }}",
    'x = """"a\\"""b"""""\n{} = 1',
    "x = '''\n'a''b'''''\n{} = 1",
    "x = 1 # it's\n{} = 1",
    "x = ''\n{} = 1",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("part", "dot"), [("a", "."), ("a-1_", " .\t"), ('"a.b # "', "."), ("'\"'", " . ")])
def test_a_key_has_at_most_twenty_dots(form, part, dot):
    parse_toml(form.format(key(MAX_DOTS, part, dot)))
    tomllib.loads(form.format(key(MAX_DOTS + 1, part, dot)))
    with pytest.raises(ValueError, match=f"{MAX_DOTS} dots"):
        parse_toml(form.format(key(MAX_DOTS + 1, part, dot)))


@pytest.mark.parametrize(
    "text",
    [
        f'x = "{key(50)}"',
        f"x = '{key(50)}'",
        f'x = """\n{key(50)}\n"{key(50)}" \\""" {key(50)} """"',
        f"x = '''\n{key(50)}\n'{key(50)}' ''' # {key(50)}",
        f"'{key(50)}' = 1 # {key(50)}",
        f'"\\"{key(50)}".x = 1',
        f"x = [{', '.join(['0.5'] * 50)}]",
        "\n".join(f"a{number}.b.c = 1.5" for number in range(50)),
    ],
)
def test_dots_in_strings_comments_and_numbers_do_not_count(text):
    assert parse_toml(text) == tomllib.loads(text)


LONG = f"{key(4000)} = 1"  # 130 MB for tomllib


def specified(path):
    path.write_text(LONG, encoding="utf-8")
    with pytest.raises(InputError, match=f"{MAX_DOTS} dots"):
        read_run(path)


def guessed(path):
    path.write_text(LONG, encoding="utf-8")
    assert file_type.kind(path) == "configuration"


@pytest.mark.parametrize(
    "parse",
    [
        specified,
        guessed,
        lambda _: lists.value(f"1\n{LONG}"),
    ],
    ids=["configuration", "kind of a file", "value of a flag"],
)
def test_a_key_of_many_dots_takes_little_memory_wherever_text_is_parsed(tmp_path, parse):
    tracemalloc.start()
    try:
        parse(tmp_path / "run.toml")
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()


def test_only_one_module_parses_toml():
    package = Path(__file__).parents[1] / "rni"
    users = [path.name for path in package.rglob("*.py") if "import tomllib" in path.read_text(encoding="utf-8")]
    assert users == ["toml.py"]


@pytest.mark.parametrize("unit", [".", "a.", "a ", '"', '"""\n\\', "'''\n", '\\"', '"a".', f"{key(19)}\n"])
def test_the_search_for_long_keys_takes_linear_time(unit):
    begun = time.process_time()
    with pytest.raises(ValueError):  # noqa: PT011  # which of two errors it is does not matter here
        parse_toml(unit * (10**6 // len(unit)) + "." * 30)
    assert time.process_time() - begun < 20
