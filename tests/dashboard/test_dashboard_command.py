"""`spsa-master dashboard`: the process, what it serves, and what it refuses."""

import json
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from console import environment, master, write_project
from dashboards import space
from tuned import tuned

from spsa.cli import dashboard as command
from spsa.cli import execute
from spsa.db.store import open_store

TOKEN = "0123456789abcdef0123"


@pytest.fixture
def project(tmp_path: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a config.toml whose database has one run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.delenv("SPSA_CONFIG", raising=False)
    write_project(tmp_path)
    with open_store(sqlite_url) as store:
        tuned(store, space(), 1)
    return tmp_path


@contextmanager
def serving(project: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and the address that it names."""
    line = master("dashboard", "--port", "0", *options)
    with subprocess.Popen(
        line,
        cwd=project,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().split()[1]
        finally:
            process.kill()


def got(url: str, token: str | None = None) -> str:
    request = urllib.request.Request(url)
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    for _ in range(100):
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return str(answer.read().decode())
        except ConnectionError:
            time.sleep(0.05)
    raise AssertionError("it does not answer")


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal(ending: signal.Signals, project: Path) -> None:
    with serving(project) as (process, address):
        assert address.startswith("http://127.0.0.1:")
        assert json.loads(got(f"{address}api/runs"))["runs"][0]["name"] == "first"
        assert "<h1>Run first</h1>" in got(f"{address}run")
        assert "data-live" in got(f"{address}static/dashboard.js")
        process.send_signal(ending)
        _, said = process.communicate(timeout=60)
    assert process.returncode == (130 if ending == signal.SIGINT else 0), said
    assert "Traceback" not in said


def test_other_addresses_need_the_token(project: Path) -> None:
    (project / "token").write_text(TOKEN + "\n")
    with serving(project, "--host", "0.0.0.0", "--token-file", "token") as (_, address):
        port = address.rstrip("/").rpartition(":")[2]
        with pytest.raises(urllib.error.HTTPError, match="401"):
            got(f"http://127.0.0.1:{port}/")
        assert "first" in got(f"http://127.0.0.1:{port}/api/runs", TOKEN)


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (["--host", "0.0.0.0"], 2, "can be reached from other machines: give --token-file"),
        (["--token-file", "none"], 2, "none: [token] cannot be read: No such file"),
        (["--token-file", "short"], 2, "at least 16 characters"),
        (["--token-file", "latin"], 2, "it is not ASCII"),
        (["--port", "70000"], 2, "70000 is not in the range"),
        (["--host", "192.0.2.1", "--token-file", "good"], 1, "192.0.2.1:8765: "),
        (["--host", "no.such.name.invalid", "--token-file", "good"], 1, "invalid:8765: "),
    ],
)
def test_what_cannot_be_served_is_refused(
    line: list[str], code: int, said: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "short").write_text("x" * 15)
    (project / "latin").write_bytes(b"\xe4" * 20)
    (project / "good").write_text(TOKEN)
    assert execute(["dashboard", *line]) == code
    heard = capsys.readouterr()
    assert said in heard.err and heard.out == ""


def test_without_the_extra_it_says_what_to_install(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "find_spec", lambda _name: None)
    assert execute(["dashboard"]) == 2
    assert "pip install 'spsa-tuner[web]'" in capsys.readouterr().err
