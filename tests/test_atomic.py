"""Files are whole or not there, and a place that can't be written is refused before the work."""

import errno
import os
import subprocess
import sys

import pytest

from rni import InputError
from rni.core import atomic
from rni.core.atomic import remove_left_over, require_writable, require_writable_folder, write_atomically


@pytest.fixture
def full(monkeypatch):
    """A disk without room: what is written never arrives."""

    def fsync(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)


def test_on_a_full_disk_the_old_file_stays_and_the_error_names_it(tmp_path, full):
    (tmp_path / "a").write_text("old", encoding="utf-8")
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_atomically(tmp_path / "a", b"new")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "a"))
    assert [(path.name, path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()] == [("a", "old")]


@pytest.mark.parametrize("name", ["folder", "file/a", "file/b/a", "device", 250 * "a"])
def test_an_impossible_place_is_refused_in_a_line_and_nothing_is_touched(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "device").symlink_to(os.devnull)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match="; allowed: ") as caught:
        require_writable(tmp_path / name)
    assert str(caught.value).startswith(str(tmp_path / name.partition("/")[0]))
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


def test_a_full_disk_is_refused_before_the_work(tmp_path, full):
    for require in (require_writable, require_writable_folder):
        with pytest.raises(InputError, match="No space left on device; allowed: "):
            require(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_possible_place_is_left_as_it_is(tmp_path):
    (tmp_path / "old").write_text("old", encoding="utf-8")
    for path in (tmp_path / "old", tmp_path / "new", tmp_path / "far" / "away"):
        require_writable(path)
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    write_atomically(tmp_path / "far" / "away", b"made")
    assert (tmp_path / "far" / "away").read_bytes() == b"made"


def test_what_the_dead_left_half_written_goes_and_everything_else_stays(tmp_path):
    host, mine, _ = atomic.me().rsplit("-", 2)
    finished = subprocess.Popen([sys.executable, "-c", ""])
    finished.wait()
    names = {
        f".a.{host}-{mine}-1.part",
        ".a.elsewhere-1-1.part",
        ".movie.part",
        "a",
        f".a.{host}-{finished.pid}-1.part",
    }
    for name in names:
        (tmp_path / name).write_text("half", encoding="utf-8")
    remove_left_over(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == names - {f".a.{host}-{finished.pid}-1.part"}
    os.utime(tmp_path / ".a.elsewhere-1-1.part", (0, 0))
    remove_left_over(tmp_path)
    assert not (tmp_path / ".a.elsewhere-1-1.part").exists()
