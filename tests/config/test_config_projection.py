"""Theta in params.toml: only numbers change, in one move."""

import json
import os
import stat
from pathlib import Path

import pytest
from golden import compare_cases

from spsa.config.projection import project_theta
from spsa.config.space import load_space
from spsa.errors import InvalidInput

TEXT = """\
# my tune
constraints = ["depth < margin"]

[margin]   # the big one
value = 200       # here
min   = 50
max   = 400
step  = 20

[depth]
value = 3.25
min = 1
max = 6
step = 1

[frozen]
value = 0.123456789
min = 0.0
max = 1
step = 0.1
active = false
"""


@pytest.fixture
def params(tmp_path):
    path = tmp_path / "params.toml"
    path.write_bytes(TEXT.encode())
    return path


def test_only_the_values_change_and_nothing_where_they_are_the_same(params):
    def shown(files):
        params.write_text(TEXT)
        before, theta = params.stat().st_mtime_ns, json.loads(files["theta"])
        changed = project_theta(params, theta)
        assert changed == (params.stat().st_mtime_ns != before)
        assert changed == (params.read_text() != TEXT)
        assert not project_theta(params, theta), "a second time nothing changes"
        load_space(params)
        lines = zip(TEXT.splitlines(), params.read_text().splitlines(), strict=True)
        return [new for old, new in lines if old != new] or ["nothing changes"]

    compare_cases(Path(__file__).with_name("projection.txt"), shown)


def test_line_ends_inline_tables_mode_and_links_survive(tmp_path):
    real = tmp_path / "real.toml"
    text = "# a\r\nmargin = { value = 200, min = 50, max = 400, step = 20 } # b\r\n"
    real.write_bytes(text.encode())
    real.chmod(0o640)
    link = tmp_path / "params.toml"
    link.symlink_to(real)
    assert project_theta(link, {"margin": 201.5})
    assert real.read_bytes() == text.replace("200", "201.5").encode()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, real]


def test_a_file_that_is_wrong_is_left_alone(params):
    params.write_text(TEXT.replace("max   = 400", "max   = 4"))
    before = params.read_text()
    with pytest.raises(InvalidInput, match="not less than max"):
        project_theta(params, {"margin": 60})
    assert params.read_text() == before
    with pytest.raises(InvalidInput, match="does not exist"):
        project_theta(params.parent / "none.toml", {})


def test_a_folder_that_cannot_be_written_to_is_a_fault(params, monkeypatch):
    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidInput, match="No space left on device"):
        project_theta(params, {"margin": 60})
    assert params.read_text() == TEXT
    assert list(params.parent.iterdir()) == [params]
