"""What is shipped: units, a compose file and an image that mean what they say, worker.pyz, a wheel.

A new machine has nothing but Python, and pastes the line that `workers invite` prints: the server
is `spsa-master serve` on an SQLite file, the worker its worker.pyz in an empty folder.
"""

import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import click
import pytest
import yaml
from asking import Store
from builders import NODES, digest, new_engine, stage
from console import ROOT, Running, call, master, write_project
from engines.faulty import LOSER, WINNER, engine, start_book
from served import got, serve

from spsa.cli import cli
from spsa.core.game_settings import Book, GameSettings
from spsa.core.scoring import Tally
from spsa.errors import BuildFailed, InvalidInput, NothingToDo, SchemaMismatch
from spsa.history.doctor import check_run
from worker.cli import compete

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
SCRIPTS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"])
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
CONTEXT = click.Context(cli)


def settings(unit):
    found: dict[str, list[str]] = {}
    for line in unit.read_text().replace("\\\n", "").splitlines():
        if line and line[0] not in "#[":
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def known(words, command):
    """Whether a command has the options among these words."""
    names = {name for option in command.params for name in option.opts}
    return {word for word in words if word.startswith("--")} <= names


def verify(unit, folder, text):
    """As systemd reads it, on a machine that has the programs it starts."""
    there = folder / unit.name.replace("@", "@demo")
    there.write_text(re.sub(r"/opt/spsa/bin/[\w-]+", "/bin/true", text))
    command = ["systemd-analyze", "verify", "--man=no", str(there)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_finds_nothing_to_say_of_the_units(unit, tmp_path):
    checked = verify(unit, tmp_path, unit.read_text())
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
    wrong = verify(unit, tmp_path, unit.read_text().replace("RestartSec=10", "RestartSecs=10"))
    assert "RestartSecs" in wrong.stdout + wrong.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_starts_a_program_with_its_options_and_not_again_where_that_cannot_help(unit):
    (command,) = settings(unit)["ExecStart"]
    program, *words = command.split()
    name = Path(program).name
    assert name in SCRIPTS
    assert known(words, compete if name == "compete" else cli.get_command(CONTEXT, words[0]))
    (codes,) = settings(unit)["RestartPreventExitStatus"]
    hopeless = {InvalidInput.exit_code, NothingToDo.exit_code, SchemaMismatch.exit_code}
    if "spsa-master" in unit.name:
        hopeless.add(BuildFailed.exit_code)
    assert {int(code) for code in codes.split()} == hopeless
    assert settings(unit)["Restart"] == ["on-failure"]


def test_database_and_server_are_reached_from_this_machine_alone_and_serve_has_its_options():
    database = SERVICES["database"]
    assert all(port.startswith("127.0.0.1:") for port in database["ports"])
    assert "pg_isready" in database["healthcheck"]["test"][1]
    assert all(port.startswith("127.0.0.1:") for port in SERVICES["server"]["ports"])
    for name in ("master", "worker", "server"):
        assert SERVICES[name]["depends_on"] == {"database": {"condition": "service_healthy"}}
        assert SERVICES[name]["restart"] == "on-failure"
        assert ("ports" in SERVICES[name]) is (name == "server")
    name, *words = SERVICES["server"]["command"]
    found = cli.get_command(CONTEXT, name).make_context(name, words).params
    assert (found["host"], found["plain_http"]) == ("0.0.0.0", True)
    secret = Path(found["token_file"])
    assert secret.parent == Path("/run/secrets") and secret.name in COMPOSE["secrets"]


def understood(command, **own):
    """Whether a tool, where it is there, finds nothing wrong with a file."""
    checked = subprocess.run(list(map(str, command)), capture_output=True, text=True, **own)
    assert checked.returncode == 0, checked.stderr


def test_compose_and_cloud_init_understand_their_files():
    docker, version = shutil.which("docker"), ["docker", "compose", "version"]
    if docker and subprocess.run(version, capture_output=True).returncode == 0:
        command = ["docker", "compose", "--file", DEPLOY / "compose.yaml", "config", "--quiet"]
        understood(command, env={"PATH": "/usr/bin:/bin", "PROJECT": "/p"})
    if shutil.which("cloud-init"):
        file = DEPLOY / "cloud-init" / "user-data.yaml"
        understood(["cloud-init", "schema", "--config-file", file])


CLOUD = yaml.safe_load((DEPLOY / "cloud-init" / "user-data.yaml").read_text())
CLOUD_FILES = {file["path"]: file for file in CLOUD["write_files"]}
CLOUD_UNIT = "/etc/systemd/system/compete.service"


def test_a_rented_machine_starts_a_unit_that_systemd_understands(tmp_path):
    """Its user, its packages and its secrets are there before that."""
    unit = tmp_path / "compete.service"
    unit.write_text(CLOUD_FILES[CLOUD_UNIT]["content"])
    assert CLOUD["runcmd"][-1] == ["systemctl", "enable", "--now", unit.name]
    assert settings(unit)["User"] == [CLOUD["users"][-1]["name"]]
    (secrets,) = settings(unit)["EnvironmentFile"]
    assert CLOUD_FILES[secrets]["permissions"] == "0600"
    (words,) = settings(unit)["ExecStart"]
    assert known(words.split(), compete)
    if shutil.which("systemd-analyze"):
        checked = verify(unit, tmp_path, unit.read_text().replace("User=spsa", "User=root"))
        assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def taken(path):
    """The content of a file, which is gone afterwards: a worker has it from the server alone."""
    content = path.read_bytes()
    path.unlink()
    return content


def staged(store, folder):
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


def pasted(line, folder):
    """A line of the shell, run in a folder with a python3 that has no packages."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    python = programs / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    python.chmod(0o755)
    own = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(folder), "NO_PROXY": "127.0.0.1"}
    return Running(["sh", "-c", line], folder, own)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
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


TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
EXAMPLE = "https://tuning.example.org"
BARE = [
    *("bwrap", "--die-with-parent", "--unshare-pid"),
    *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
]
for there in ("/usr", "/bin", "/lib", "/lib64", "/etc/alternatives", "/etc/passwd"):
    BARE += ["--ro-bind-try", there, there]
for there in (str(ROOT), sys.prefix, sys.base_prefix):  # the interpreter of scripted engines
    BARE += ["--ro-bind", there, there]


def is_bare_python_there():
    """Whether a name space with the programs of the system alone has a Python for worker.pyz."""
    code = "import sys; sys.exit(sys.version_info < (3, 11))"
    words = [*BARE, "/usr/bin/python3", "-c", code]
    return (
        bool(shutil.which("bwrap")) and subprocess.run(words, capture_output=True).returncode == 0
    )


def started_by(unit, machine, environment):
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


@pytest.mark.slow
@pytest.mark.skipif(not is_bare_python_there(), reason="no bwrap, or no Python 3.11 in /usr/bin")
def test_a_rented_machine_plays_and_powers_itself_off(sqlite_url, tmp_path):
    """What cloud-init starts there, in a name space whose Python has no packages."""
    write_project(tmp_path)
    unit = CLOUD_FILES[CLOUD_UNIT]["content"].replace("--spsa", "--spsa -c 1 --idle-timeout 3")
    machine, database = tmp_path / "machine", ("--database-url", sqlite_url)
    _, address = serve(tmp_path, *database)
    words = ("workers", "invite", "rented-1", "--url", EXAMPLE, *database)
    line = call(master(*words), tmp_path).stdout
    token = line.split("SPSA_TOKEN=")[1].split()[0]
    with Store(sqlite_url, durable=False) as store:
        run = staged(store, tmp_path)
        own = {"SPSA_SERVER": address.rstrip("/"), "SPSA_TOKEN": token, "NO_PROXY": "127.0.0.1"}
        rented = started_by(unit, machine, own)
        assert rented.ended() == 0, rented.log
        invited, journal = TUTORIAL.partition("$ spsa-master workers invite rented-1")[2].split(
            "$ "
        )
        assert re.sub(r"(?<=TOKEN=)\S+", "...", line) == invited.partition("\n")[2]
        said = rented.log.replace(own["SPSA_SERVER"], EXAMPLE)
        told, shown = (
            {re.sub(r"^\d.{7}|batch \d+|\d+ nodes", "", one) for one in text.splitlines()}
            for text in (said, journal.partition("\n")[2].partition("```")[0])
        )
        assert told == shown - {"..."}
        (iteration,) = store.tick(run.master, 1000).open
        assert iteration.tally == Tally(8, 0, 0, (0, 0, 0, 0, 4))
    assert (machine / "state" / "off").read_text() == "poweroff\n"
    assert started_by(unit, tmp_path / "wrong", {**own, "SPSA_TOKEN": "other"}).ended() == 2
    assert not (tmp_path / "wrong" / "run" / "over").exists(), "it stays on, to be looked at"


@pytest.fixture
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


@pytest.mark.slow
def test_the_wheel_holds_all_that_the_programs_need(installed, tmp_path):
    ask = "import spsa, worker; print(spsa.__file__, worker.__file__)"
    files = call([installed / "python", "-c", ask], tmp_path, PYTHONPATH="").stdout.split()
    assert len(files) == 2 and all(str(installed.parent) in file for file in files), files
    site = next((installed.parent / "lib").glob("python*/site-packages"))
    listed = call(["git", "ls-files", "spsa", "worker"], ROOT).stdout.split()
    assert [name for name in listed if not (site / name).is_file()] == []
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
