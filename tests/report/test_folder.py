"""Output is there whole or not at all, and nothing of anyone else's is lost."""

import pytest

from bayesknn.report.folder import check_output, write_file, write_folder

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
        check_output(tmp_path / "file", True, OWN)
    with pytest.raises(ValueError, match="is a folder"):
        check_output(tmp_path, True)
    with pytest.raises(ValueError, match="is not a folder one may write to"):
        check_output(tmp_path / "file" / "out", False, OWN)


def test_single_files_are_treated_alike(tmp_path):
    path = tmp_path / "deep" / "a.csv"
    write_file(path, "x\r\n")
    assert path.read_bytes() == b"x\r\n"
    with pytest.raises(ValueError, match="exists; pass --force"):
        write_file(path, "y")
    write_file(path, "y", force=True)
    assert names(path.parent) == ["a.csv"]
