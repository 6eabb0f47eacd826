"""Theta in params.toml: only numbers change, in one move."""

import os
import stat

import pytest

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


def test_only_the_values_change(params):
    assert project_theta(params, {"margin": 211.5234567, "depth": 3.0, "frozen": 0.123456789})
    wanted = TEXT.replace("value = 200 ", "value = 211.523 ").replace("3.25", "3")
    assert params.read_text() == wanted


def test_what_is_there_already_changes_nothing(params):
    before = params.stat()
    assert not project_theta(params, {"margin": 200.00004, "depth": 3.25, "unknown": 1})
    assert (params.stat().st_ino, params.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert project_theta(params, {"margin": 333.333333})
    assert not project_theta(params, {"margin": 333.333333})


def test_a_whole_number_stays_one_and_bounds_are_kept(params):
    assert project_theta(params, {"margin": 400.0000001, "depth": 0.9999})
    values = {parameter.name: parameter.value for parameter in load_space(params).parameters}
    assert values == {"margin": 400, "depth": 1.0, "frozen": 0.123456789}
    assert "value = 400 " in params.read_text()
    assert "value = 400  " in params.read_text()


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
