"""A list of numbers is written in one way, whichever command takes it."""

import pytest

from rni.cli.lists import joined, numbers, value

FORMS = [["0.9", ".8"], ["0.9,.8"], ["0.9,", ".8"], ["[0.9, .8]"], ["[0.9,", ".8]"], ["0.9 .8"]]


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
@pytest.mark.parametrize("equals", [False, True])
def test_every_form_is_the_same_list_and_leaves_what_follows(form, equals):
    arguments = [f"--decays={form[0]}", *form[1:]] if equals else ["--decays", *form]
    flag, text, *rest = joined(["train", *arguments, "net.toml", "--out", "3"])[1:]
    assert (flag, rest) == ("--decays", ["net.toml", "--out", "3"])
    assert numbers("--decays", text) == value(text) == [0.9, 0.8]


def test_numbers_that_follow_no_flag_stay_apart():
    assert joined(["runs", "remove", "12", "34"]) == ["runs", "remove", "12", "34"]
    assert joined(["runs", "remove", "--", "12", "34"]) == ["runs", "remove", "--", "12", "34"]
    assert joined(["--store", "runs", "1", "2"]) == ["--store", "runs", "1", "2"]


@pytest.mark.parametrize(("text", "said"), [(".5", 0.5), ("5", 5), ("relu", "relu"), ("", ""), ("[[1]", "[[1]")])
def test_what_is_no_list_is_a_number_or_text(text, said):
    assert value(text) == said
