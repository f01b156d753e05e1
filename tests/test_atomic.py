"""Files are whole or not there, and a place that can't be written is refused before the work."""

import errno
import os
import stat
import subprocess
import sys
import time

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
    with pytest.raises(InputError) as caught:
        require_writable(tmp_path / name)
    assert str(caught.value).startswith(str(tmp_path / name.partition("/")[0]))
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


def test_a_full_disk_is_refused_before_the_work(tmp_path, full):
    for require in (require_writable, require_writable_folder):
        with pytest.raises(InputError, match="No space left"):
            require(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_possible_place_is_left_as_it_is(tmp_path):
    (tmp_path / "old").write_text("old", encoding="utf-8")
    for path in (tmp_path / "old", tmp_path / "new", tmp_path / "far" / "away"):
        require_writable(path)
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    write_atomically(tmp_path / "far" / "away", b"made")
    assert (tmp_path / "far" / "away").read_bytes() == b"made"


def test_temporary_files_of_ended_processes_are_removed_and_all_others_stay(tmp_path):
    namespace, own, _ = atomic.process_tag().split("-")
    finished = subprocess.Popen([sys.executable, "-c", ""])
    finished.wait()
    ended = f".a.{namespace}-{finished.pid}-1.part"
    names = {f".a.{namespace}-{own}-1.part", ".a.0123456789ab-1-1.part", ".movie.part", "a", ended}
    for name in names:
        (tmp_path / name).write_text("half")
    # Clocks of machines differ. A file that is days old has no writer any more.
    hours_ago = time.time() - 23 * 3600
    os.utime(tmp_path / ".a.0123456789ab-1-1.part", (hours_ago, hours_ago))
    remove_left_over(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == names - {ended}
    os.utime(tmp_path / ".a.0123456789ab-1-1.part", (0, 0))
    remove_left_over(tmp_path)
    assert not (tmp_path / ".a.0123456789ab-1-1.part").exists()


def test_processes_of_two_containers_never_write_the_same_file(monkeypatch):
    def tag(namespace):
        monkeypatch.setattr(os, "readlink", lambda _: f"pid:[{namespace}]")
        atomic._namespace.cache_clear()
        return atomic.process_tag()

    tags = {tag(number) for number in (4026531836, 4026532180, 4026532181)}
    atomic._namespace.cache_clear()
    assert len(tags) == 3
    assert all(each.split("-")[1] == str(os.getpid()) for each in tags)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_file_keeps_its_permissions(tmp_path, mode):
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(mode)
    write_atomically(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "a").touch()
    write_atomically(tmp_path / "b", b"new")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_a_symbolic_link_is_followed_and_stays(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/target")
    for content in (b"first", b"second"):
        require_writable(tmp_path / "link")
        write_atomically(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "folder" / "target").read_bytes() == content
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["target"]
