"""A new machine with nothing but Python: the line that `workers invite` prints, and what follows.

The server is `spsa-master serve` on an SQLite file, the worker its worker.pyz in an empty folder.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from asking import Store
from builders import NODES, Stage, digest, new_engine, stage
from console import ROOT, Running, call, master, write_project
from engines.faulty import LOSER, WINNER, engine, start_book
from served import serve

from spsa.core.game_settings import Book, GameSettings
from spsa.core.scoring import Tally
from spsa.history.doctor import check_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here"),
]


def taken(path: Path) -> bytes:
    """The content of a file, which is gone afterwards: a worker has it from the server alone."""
    content = path.read_bytes()
    path.unlink()
    return content


def staged(store: Store, folder: Path) -> Stage:
    """A run with an iteration of four batches, whose book and engines are in the database alone."""
    path = start_book(folder)
    book = Book(name=str(path), sha256=digest(path))
    run = stage(store, files={book.sha256: taken(path)})
    sides = {}
    for side, moves in (("plus", WINNER), ("minus", LOSER)):
        path = engine(folder, side, moves=moves)
        sides[side] = new_engine(side, sha256=digest(path), content=taken(path))
    game_settings = GameSettings(time_control=NODES, book=book)
    run.open(**sides, plus_options={}, minus_options={}, batch_games=2, game_settings=game_settings)
    return run


def pasted(line: str, folder: Path) -> Running:
    """A line of the shell, run in a folder with a python3 that has no packages."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    python = programs / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    python.chmod(0o755)
    own = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(folder), "NO_PROXY": "127.0.0.1"}
    return Running(["sh", "-c", line], folder, own)


def test_the_pasted_line_counts_games_on_the_page(sqlite_url, tmp_path):
    write_project(tmp_path)
    machine, database = tmp_path / "machine", ("--database-url", sqlite_url)
    _, address = serve(tmp_path, *database)
    words = ("workers", "invite", "laptop", "--url", address.rstrip("/"), *database)
    line = call(master(*words), tmp_path).stdout.strip()
    with Store(sqlite_url, durable=False) as store:
        run = staged(store, tmp_path)
        shell = pasted(f"{line} -c 1 --lease 10 --max-batches 4", machine)
        assert shell.ended() == 0, shell.log
        (iteration,) = store.tick(run.master, 1000).open
        assert iteration.tally == Tally(8, 0, 0, (0, 0, 0, 0, 4))
        assert [worker.host for worker in store.workers() if worker.games] == ["laptop"]
        assert check_run(store, run.now()) == []
    assert {path.name for path in machine.iterdir()} <= {"bin", "worker.pyz", ".cache"}


BARE = [
    "bwrap",
    "--die-with-parent",
    "--unshare-pid",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--tmpfs",
    "/tmp",
]
for there in ("/usr", "/bin", "/lib", "/lib64", "/etc/alternatives", "/etc/passwd"):
    BARE += ["--ro-bind-try", there, there]
for there in (str(ROOT), sys.base_prefix):  # the interpreter of the scripted engines
    BARE += ["--ro-bind", there, there]


def is_bare_python_there() -> bool:
    """Whether a name space with the programs of the system alone has a Python for worker.pyz."""
    code = "import sys; sys.exit(sys.version_info < (3, 11))"
    words = [*BARE, "/usr/bin/python3", "-c", code]
    return (
        bool(shutil.which("bwrap")) and subprocess.run(words, capture_output=True).returncode == 0
    )


def started_by(unit: str, machine: Path, environment: dict[str, str]) -> Running:
    """The commands of a unit, one after the other as systemd runs them, on a bare machine."""
    found = re.findall(r"^Exec(?:StartPre|Start|StopPost)=\+?(.*)$", unit, re.M)
    for folder in ("state", "run", "bin"):
        (machine / folder).mkdir(parents=True)
    off = machine / "bin" / "systemctl"
    off.write_text('#!/bin/sh\necho "$@" > /var/lib/spsa/off\n')
    off.chmod(0o755)
    mine = [("state", "/var/lib/spsa"), ("run", "/run/spsa"), ("bin", "/opt/bin")]
    words = [*BARE, *(w for here, there in mine for w in ("--bind", str(machine / here), there))]
    line = "\n".join(("cd /var/lib/spsa", *found))
    own = {"PATH": "/opt/bin:/usr/bin:/bin", "HOME": "/var/lib/spsa", **environment}
    return Running([*words, "sh", "-ec", line], machine, own)


@pytest.mark.skipif(not is_bare_python_there(), reason="no bwrap, or no Python 3.11 in /usr/bin")
def test_a_rented_machine_plays_and_powers_itself_off(sqlite_url, tmp_path):
    """What cloud-init starts there, in a name space whose Python has no packages."""
    write_project(tmp_path)
    cloud = yaml.safe_load((ROOT / "deploy" / "cloud-init" / "user-data.yaml").read_text())
    (unit,) = (file["content"] for file in cloud["write_files"] if "[Unit]" in file["content"])
    unit = unit.replace("--spsa", "--spsa -c 1 --idle-timeout 3")
    machine, database = tmp_path / "machine", ("--database-url", sqlite_url)
    _, address = serve(tmp_path, *database)
    line = call(master("workers", "invite", "rented-1", *database), tmp_path).stdout
    token = line.split("SPSA_TOKEN=")[1].split()[0]
    with Store(sqlite_url, durable=False) as store:
        run = staged(store, tmp_path)
        own = {"SPSA_SERVER": address.rstrip("/"), "SPSA_TOKEN": token, "NO_PROXY": "127.0.0.1"}
        rented = started_by(unit, machine, own)
        assert rented.ended() == 0, rented.log
        guide = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
        shown = guide.split("$ journalctl -u compete -o cat\n")[1].split("```")[0].splitlines()
        said = rented.log.replace(own["SPSA_SERVER"], "https://tuning.example.org").splitlines()
        plain = [re.sub(r"\d+|(?<=game)s", "", line) for line in (*shown, said[0], said[-1])]
        assert plain[:1] + plain[2:3] == plain[3:]
        (iteration,) = store.tick(run.master, 1000).open
        assert iteration.tally == Tally(8, 0, 0, (0, 0, 0, 0, 4))
    assert (machine / "state" / "off").read_text() == "poweroff\n"
    wrong = started_by(unit, tmp_path / "wrong", {**own, "SPSA_TOKEN": "other"})
    assert wrong.ended() == 2
    assert not (tmp_path / "wrong" / "run" / "over").exists(), "it stays on, to be looked at"
