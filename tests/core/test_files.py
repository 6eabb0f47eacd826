"""Files are written whole and with their modes, folders closed to others, and old ones removed."""

import os
from pathlib import Path

import pytest

from spsa.errors import TuningError
from spsa.files import content, private_folder, remove_old, write_whole


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    path, synced, opened = tmp_path / "x", [], [*Path("/proc/self/fd").iterdir()]

    def told(descriptor):
        synced.append("folder" if path.exists() else os.fstat(descriptor).st_size)

    monkeypatch.setattr(os, "fsync", told)
    before = os.umask(0o022)
    modes = []
    for change, mode in ((0, None), (0o640, None), (0, 0o755)):
        if change:
            path.chmod(change)
        write_whole(path, b"whole", mode)
        modes.append(path.stat().st_mode & 0o777)
    os.umask(before)
    assert (synced[:2], modes) == ([5, "folder"], [0o644, 0o640, 0o755])
    monkeypatch.setattr(Path, "replace", lambda *_: path.with_name("y").read_bytes())
    with pytest.raises(OSError, match=f"'{path}'"):
        write_whole(path, b"other")
    with pytest.raises(IsADirectoryError):
        content(tmp_path, 1)
    assert (path.read_bytes(), [*tmp_path.iterdir()]) == (b"whole", [path])
    assert [*Path("/proc/self/fd").iterdir()] == opened


def test_a_pipe_is_written_in_place_and_a_link_is_no_private_folder(tmp_path):
    os.mkfifo(pipe := tmp_path / "pipe")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, b"x")
    assert os.read(reader, 9) == b"x"
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(TuningError, match="is a symbolic link; name the directory itself"):
        private_folder(tmp_path / "link", "the cache")
    with pytest.raises(TuningError, match="cannot be made: Not a directory"):
        private_folder(pipe / "cache", "the cache")
    assert private_folder(tmp_path / "made", "the cache").stat().st_mode & 0o777 == 0o700
    for name, age in (("old", 90_000), ("new", 80_000)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (tmp_path.stat().st_mtime - age,) * 2)
    remove_old(tmp_path, "*[dw]")
    assert not (tmp_path / "old").exists() and (tmp_path / "new").exists()
