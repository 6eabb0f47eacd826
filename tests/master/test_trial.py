"""What is tried after an engine could not be built or played with, and what its owner reads."""

import json
import os
import shutil
from pathlib import Path

from golden import compare_cases

from spsa.config.starter import Setup
from spsa.master.trial import _difference, _executables, _last_words, _mended


def test_what_is_tried_after_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", str)

    def shown(files):
        command, made = (json.loads(files.get(name, "[]")) for name in ("command", "made"))
        setup = Setup(build={"source_path": "engines/rook", "command": tuple(command)})
        (tmp_path / "src").mkdir(exist_ok=True)
        (tmp_path / files.get("folder", "") / "Makefile").write_text(files.get("makefile", ""))
        (tmp_path / "README.md").write_text(files.get("readme", ""))
        mended = _mended(files["said"], setup, made, tmp_path)
        yield from (f"try {_difference(setup, one)}" for one in mended if one != setup)
        yield from _last_words(files["said"]).splitlines()

    compare_cases(Path(__file__).with_name("trials.txt"), shown)


def test_the_programs_that_a_build_has_left_are_found_the_newest_first(tmp_path):
    (tmp_path / "CMakeFiles").mkdir()
    files = ("b", 2), ("a", 3), ("object", 1), ("CMakeFiles/c", 2), ("text", 2)
    for age, (name, kind) in enumerate(files):
        head = b"text" if name == "text" else b"\x7fELF"
        (tmp_path / name).write_bytes(head + bytes(12) + bytes([kind]))
        os.utime(tmp_path / name, (9 - age, 9 - age))
    (tmp_path / "link").symlink_to("a")
    assert [*_executables(tmp_path)] == ["b", "a"]
