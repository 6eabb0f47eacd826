"""The wheel that is built from this tree holds all that the programs need."""

import subprocess
import sys
import sysconfig

import pytest
from console import ROOT, Running, call, write_project
from served import got

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The programs of a new environment, in which nothing of this tree is but the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    build = ("wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", folder, ROOT)
    subprocess.run([*pip, *build], check=True, timeout=240)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    python = folder / "env" / "bin" / "python"
    install = ("--python", python, "install", "--no-deps", "--no-index", wheel)
    subprocess.run([*pip, *install], check=True, timeout=240)
    # libraries come from the environment of the tests; a path of a .pth file runs no .pth files,
    # so that this tree itself, which is installed for editing there, is not found
    site = next((folder / "env" / "lib").glob("python*/site-packages"))
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "env" / "bin"


def test_it_is_not_this_tree(installed, tmp_path):
    ask = "import spsa, worker; print(spsa.__file__, worker.__file__)"
    files = call([installed / "python", "-c", ask], tmp_path, PYTHONPATH="").stdout.split()
    assert len(files) == 2 and all(str(installed.parent) in file for file in files), files


def test_every_file_that_is_no_module_is_in_it(installed):
    site = next((installed.parent / "lib").glob("python*/site-packages"))
    listed = call(["git", "ls-files", "spsa", "worker"], ROOT).stdout.split()
    assert [name for name in listed if not (site / name).is_file()] == []


def test_the_server_answers(installed, tmp_path):
    write_project(tmp_path)
    program = installed / "spsa-master"
    assert call([program, "db", "upgrade"], tmp_path, PYTHONPATH="").returncode == 0
    server = Running([program, "serve", "--port", 0], tmp_path, PYTHONPATH="")
    server.until(lambda: "\n" in server.out)
    address = server.out.split()[1]
    for path, expected in (
        ("", "There is no run yet"),
        ("static/look.css", "color-scheme"),
        ("static/pages.js", "use strict"),
    ):
        assert expected in got(address + path)
