"""Output is there whole or not at all, and nothing of anyone else's is lost."""

import errno
import shutil
import signal
import subprocess
import sys

import pytest

from bayesknn.report.folder import write_file, write_folder

OWN = ("a.txt", "b.txt")


def write(path, text, **options):
    with write_folder(path, own=OWN, **options) as folder:
        (folder / "a.txt").write_text(text)


def names(path):
    return sorted(entry.name for entry in path.iterdir())


def test_folder_appears_with_those_above_it(tmp_path):
    out = tmp_path / "deep" / "down"
    write(out, "new")
    assert names(tmp_path / "deep") == ["down"]
    assert (out / "a.txt").read_text() == "new"


def test_an_error_leaves_nothing(tmp_path):
    with (
        pytest.raises(KeyboardInterrupt),
        write_folder(tmp_path / "deep" / "out", own=OWN) as folder,
    ):
        (folder / "a.txt").write_text("half")
        raise KeyboardInterrupt
    assert names(tmp_path) == []


def test_an_earlier_result_is_replaced_only_by_force(tmp_path):
    out = tmp_path / "out"
    write(out, "old")
    (out / "b.txt").write_text("old")
    with pytest.raises(ValueError, match="out exists; pass --force to replace it"):
        write(out, "new")
    assert (out / "a.txt").read_text() == "old"
    write(out, "new", force=True)
    assert names(out) == ["a.txt"]
    assert (out / "a.txt").read_text() == "new"
    assert names(tmp_path) == ["out"]


def test_an_error_under_force_keeps_the_earlier_result(tmp_path):
    out = tmp_path / "out"
    write(out, "old")
    with pytest.raises(RuntimeError), write_folder(out, force=True, own=OWN):
        raise RuntimeError
    assert (out / "a.txt").read_text() == "old"
    assert names(tmp_path) == ["out"]


def test_a_folder_with_anything_else_in_it_is_never_replaced(tmp_path):
    (tmp_path / "thesis.tex").write_text("three years")
    for force in (False, True):
        with pytest.raises(ValueError, match=r"holds 'thesis.tex', which is not a file of this"):
            write(tmp_path, "new", force=force)
    assert names(tmp_path) == ["thesis.tex"]


def test_an_empty_folder_may_be_filled(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    write(out, "new")
    assert names(out) == ["a.txt"]


def test_files_and_folders_are_not_taken_for_each_other(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="file is not a folder"):
        write(tmp_path / "file", "new", force=True)
    with pytest.raises(ValueError, match="is a folder"), write_file(tmp_path, force=True):
        pytest.fail("too late")
    with pytest.raises(ValueError, match="out cannot be written: a file is in its way"):
        write(tmp_path / "file" / "out", "new")


def test_single_files_are_treated_alike(tmp_path):
    path = tmp_path / "deep" / "a.csv"

    def fill(text, **options):
        with write_file(path, **options) as file:
            file.write_text(text)

    fill("x")
    assert path.read_text() == "x"
    with pytest.raises(ValueError, match="exists; pass --force"):
        fill("y")
    fill("y", force=True)
    assert path.read_text() == "y"
    assert names(path.parent) == ["a.csv"]


def test_a_link_stays_and_what_it_points_to_is_written(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for force in (False, True):
        write(tmp_path / "link", f"{force}", force=force)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "real" / "a.txt").read_text() == f"{force}"
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    with write_file(tmp_path / "link.csv") as file:
        file.write_text("x")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "x"
    assert names(tmp_path) == ["link", "link.csv", "real", "real.csv"]


def test_one_process_at_a_time(tmp_path):
    out = tmp_path / "out"
    with write_folder(out, own=OWN) as folder:
        (folder / "a.txt").write_text("first")
        for force in (False, True):
            with pytest.raises(ValueError, match="another process is writing to .*out; wait"):
                write(out, "second", force=force)
    assert (out / "a.txt").read_text() == "first"
    assert names(tmp_path) == ["out"]


KILLED = """
import os, signal, sys
from pathlib import Path
from bayesknn.report.folder import write_folder

out = Path(sys.argv[1])
with write_folder(out, force=True, own=("a.txt", "b.txt")) as folder:
    (folder / "a.txt").write_text("half")
    if sys.argv[2] == "renaming":  # between the two renames
        out.rename(folder.parent / "old")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("moment", ["writing", "renaming"])
def test_what_a_killed_process_left_is_cleared_by_the_next(tmp_path, moment):
    out = tmp_path / "out"
    write(out, "old")
    subprocess.run([sys.executable, "-c", KILLED, str(out), moment], check=False)
    assert names(tmp_path)[0] == ".out.partial"
    with pytest.raises(ValueError, match="out exists; pass --force"):
        write(out, "new")
    # Nothing but the earlier result, which was in the middle of being replaced, is there again.
    assert names(tmp_path) == ["out"]
    assert (out / "a.txt").read_text() == "old"


def test_an_unwritable_place_is_found_before_the_work(tmp_path, monkeypatch):
    # By the call itself, since those who run tests as root may write anywhere.
    def refuse(self, *arguments, **options):
        raise OSError(errno.EROFS, "Read-only file system", str(self))

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    with pytest.raises(ValueError, match="out cannot be written: read-only file system"):
        write(tmp_path / "out", pytest.fail)


def test_the_root_of_a_disk_is_no_place_to_replace(tmp_path, monkeypatch):
    (tmp_path / "disk").mkdir()
    monkeypatch.setattr("pathlib.Path.is_mount", lambda self: self.name == "disk")
    with pytest.raises(ValueError, match="is where a disk is mounted; name a folder in it"):
        write(tmp_path / "disk", "new")


def test_ctrl_c_at_the_last_moment_is_too_late(tmp_path, monkeypatch):
    """A result that is in its place is not said to be interrupted, and leaves nothing behind."""
    remove = shutil.rmtree

    def interrupt(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        remove(*arguments, **options)

    monkeypatch.setattr("bayesknn.report.folder.shutil.rmtree", interrupt)
    write(tmp_path / "out", "new")
    assert names(tmp_path) == ["out"]
    with pytest.raises(RuntimeError), write_folder(tmp_path / "other", own=OWN):
        raise RuntimeError
    assert names(tmp_path) == ["out"]
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_no_room_for_the_lock_leaves_nothing(tmp_path, monkeypatch):
    def fill(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.open", fill)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path / "out", "new")
    assert names(tmp_path) == []
