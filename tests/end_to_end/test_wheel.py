"""The wheel that is built from this tree holds all that the programs need."""

import os
import re
import select
import signal
import subprocess
import sys
import sysconfig
import urllib.request
from pathlib import Path

import pytest
from console import ROOT, environment, write_project

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


def own_environment() -> dict[str, str]:
    return {name: value for name, value in environment().items() if name != "PYTHONPATH"}


def test_it_is_not_this_tree(installed: Path, tmp_path: Path) -> None:
    ask = "import spsa, worker; print(spsa.__file__, worker.__file__)"
    done = subprocess.run(
        [installed / "python", "-c", ask], cwd=tmp_path, env=own_environment(), capture_output=True
    )
    files = done.stdout.decode().split()
    assert len(files) == 2 and all(str(installed.parent) in file for file in files), done


def test_every_file_that_is_no_module_is_in_it(installed: Path) -> None:
    site = next((installed.parent / "lib").glob("python*/site-packages"))
    listed = subprocess.run(
        ["git", "ls-files", "spsa", "worker"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    missing = [name for name in listed.stdout.split() if not (site / name).is_file()]
    assert missing == []


def test_the_server_answers(installed: Path, tmp_path: Path) -> None:
    write_project(tmp_path)
    own = own_environment()
    subprocess.run(
        [installed / "spsa-master", "db", "upgrade"], cwd=tmp_path, env=own, check=True, timeout=120
    )
    command = [installed / "spsa-master", "serve", "--port", "0"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as server:
        try:
            address = _address(server)
            for path, expected in (
                ("", "There is no run yet"),
                ("static/look.css", "color-scheme"),
                ("static/pages.js", "use strict"),
            ):
                with urllib.request.urlopen(address + path, timeout=60) as answer:
                    assert expected in answer.read().decode()
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)


def _address(server: "subprocess.Popen[bytes]") -> str:
    assert server.stdout is not None
    said = b""
    while (found := re.search(rb"http://\S+/", said)) is None:
        assert select.select([server.stdout], [], [], 120)[0], said
        chunk = os.read(server.stdout.fileno(), 4096)
        assert chunk, said
        said += chunk
    return found[0].decode()
