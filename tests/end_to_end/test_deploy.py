"""What is shipped to run a fleet by: units, a compose file and an image that mean what they say."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import click
import pytest
import yaml
from console import ROOT

from spsa.cli import cli
from spsa.errors import BuildFailed, InvalidInput, NothingToDo, SchemaMismatch
from worker.cli import compete

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
SCRIPTS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"])
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
CONTEXT = click.Context(cli)


def settings(unit: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in unit.read_text().replace("\\\n", "").splitlines():
        if line and line[0] not in "#[":
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def verify(unit: Path, folder: Path, text: str) -> "subprocess.CompletedProcess[str]":
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
def test_a_unit_starts_a_program_with_options_that_it_has(unit):
    (command,) = settings(unit)["ExecStart"]
    program, *words = command.split()
    name = Path(program).name
    assert name in SCRIPTS
    started = compete if name == "compete" else cli.get_command(CONTEXT, words[0])
    known = {name for option in started.params for name in option.opts}
    assert {word for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_is_not_started_again_where_that_cannot_help(unit):
    (codes,) = settings(unit)["RestartPreventExitStatus"]
    hopeless = {InvalidInput.exit_code, NothingToDo.exit_code, SchemaMismatch.exit_code}
    if "spsa-master" in unit.name:
        hopeless.add(BuildFailed.exit_code)
    assert {int(code) for code in codes.split()} == hopeless
    assert settings(unit)["Restart"] == ["on-failure"]


def test_database_and_server_are_reached_from_this_machine_alone():
    database = SERVICES["database"]
    assert all(port.startswith("127.0.0.1:") for port in database["ports"])
    assert "pg_isready" in database["healthcheck"]["test"][1]
    assert all(port.startswith("127.0.0.1:") for port in SERVICES["server"]["ports"])
    for name in ("master", "worker", "server"):
        assert SERVICES[name]["depends_on"] == {"database": {"condition": "service_healthy"}}
        assert ("ports" in SERVICES[name]) is (name == "server")


def test_the_service_of_the_server_has_options_that_serve_has():
    name, *words = SERVICES["server"]["command"]
    command = cli.get_command(CONTEXT, name)
    assert command is not None
    found = command.make_context(name, words).params
    assert (found["host"], found["plain_http"]) == ("0.0.0.0", True)
    secret = Path(found["token_file"])
    assert secret.parent == Path("/run/secrets") and secret.name in COMPOSE["secrets"]


@pytest.mark.skipif(
    subprocess.run(["docker", "compose", "version"], capture_output=True).returncode != 0
    if shutil.which("docker")
    else True,
    reason="no docker compose here",
)
def test_compose_understands_the_file():
    command = ["docker", "compose", "--file", str(DEPLOY / "compose.yaml"), "config", "--quiet"]
    checked = subprocess.run(
        command, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "PROJECT": "/p"}
    )
    assert checked.returncode == 0, checked.stderr


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
    known = {name for option in compete.params for name in option.opts}
    assert {word for word in words.split() if word.startswith("--")} <= known
    folder = tmp_path / "checked"
    folder.mkdir()
    if shutil.which("systemd-analyze"):
        checked = verify(unit, folder, unit.read_text().replace("User=spsa", "User=root"))
        assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("cloud-init") is None, reason="no cloud-init here")
def test_cloud_init_understands_the_file():
    file = DEPLOY / "cloud-init" / "user-data.yaml"
    command = ["cloud-init", "schema", "--config-file", str(file)]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
