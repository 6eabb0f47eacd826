"""Every command as a process: its help, its exit codes, and what it leaves behind."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from console import ROOT, call, environment, master, worker, write_project

from spsa.cli import COMMANDS, cli, execute
from spsa.db.migrate import upgrade

READERS = (
    ["status"],
    ["status", "--watch"],
    ["params", "diff", "--run", "small"],
    ["validate"],
    ["pause"],
    ["resume"],
    ["stop"],
    ["set", "--iterations", "5"],
    ["doctor"],
)
SECRET = "hunter2"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.delenv("SPSA_CONFIG", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    "command", [[name] for name in COMMANDS] + [["params", "diff"], ["db", "upgrade"]]
)
def test_every_command_has_help(command: list[str]) -> None:
    shown = CliRunner().invoke(cli, [*command, "--help"])
    assert shown.exit_code == 0 and shown.output.startswith("Usage:")
    assert "..." not in shown.output.partition("Commands:")[2], "a summary that was cut"


@pytest.mark.parametrize(
    "start", ["from spsa.cli import main; main()", "from worker.cli import main; main()"]
)
def test_help_loads_nothing_heavy(start: str, tmp_path: Path) -> None:
    heavy = {"sqlalchemy", "numpy", "alembic", "rich", "chess", "tomlkit", "tree_sitter"}
    code = (
        f"import atexit, sys; atexit.register(lambda: print(*({heavy!r} & set(sys.modules))));"
        f"sys.argv = ['x', '--help']; {start}"
    )
    done = call([sys.executable, "-c", code], tmp_path)
    assert done.returncode == 0 and "Usage:" in done.stdout
    assert done.stdout.splitlines()[-1] == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["status", "--nope"],
        ["params", "nonsense"],
        ["set", "--iterations", "0"],
        ["status", "--watch", "--interval", "0"],
        ["status", "--watch", "--interval", "nan"],
        ["validate", "--games", "1"],
        ["validate", "--sprt", "5", "0"],
        ["validate", "--sprt", "nan", "5"],
        ["validate", "--also", "soon"],
        ["run", "--from", "small", "--run", "other", "--doubt", "0.5"],
        ["run", "--from", "small", "--doubt", "nan"],
        ["run", "--seed", "-1"],
        ["demo", "--seed", "1,x"],
    ],
)
def test_what_the_command_line_does_not_know_is_usage(
    project: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(arguments) == 2
    heard = capsys.readouterr()
    assert heard.out == "" and "Error:" in heard.err


def test_a_mistyped_command_gets_the_right_one_named(tmp_path: Path) -> None:
    done = call(master("statsu"), tmp_path)
    assert done.returncode == 2 and "did you mean 'status'?" in done.stderr


@pytest.mark.parametrize("arguments", [*READERS, ["run"], ["params", "show"], ["db", "upgrade"]])
def test_without_a_configuration_each_command_says_so(
    tmp_path: Path,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert execute(arguments) == 2
    heard = capsys.readouterr()
    assert heard.out == "" and heard.err.startswith("config.toml: [config.toml] does not exist")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", READERS)
def test_a_command_that_looks_makes_no_database(
    project: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(project.iterdir())
    assert execute(arguments) == 3
    heard = capsys.readouterr()
    assert "there is no such file yet" in heard.err and "spsa-master run" in heard.err
    assert sorted(project.iterdir()) == before


def test_a_worker_makes_no_database_either(project: Path) -> None:
    done = call(worker("--spsa", "--once", "-c", "1"), project)
    assert done.returncode == 3 and not (project / "spsa.db").exists()


@pytest.mark.parametrize("arguments", READERS)
def test_a_database_without_a_run_is_nothing_to_do(
    project: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    upgrade(f"sqlite:///{project / 'spsa.db'}")
    expected = 0 if arguments == ["doctor"] else 3
    assert execute(arguments) == expected, capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://u:{SECRET}@127.0.0.1:1/x",
        "sqlite:////nowhere/x/y.db",
        "sqlite:////",
    ],
)
def test_a_database_that_does_not_answer_is_5(project: Path, url: str) -> None:
    for command in (master("status"), worker("--spsa", "--once", "-c", "1")):
        done = call(command, project, DATABASE_URL=url)
        assert done.returncode == 5 and done.stdout == ""
        assert SECRET not in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "url",
    [
        SECRET,
        f"u:{SECRET}@h/x",
        f"postgresql://u:{SECRET}@h:abc/x",
        f"postgresql://u:{SECRET}@h:99999/x",
        f"postgresql://u:{SECRET}@[::1/x",
        f"postgresql://u:a@{SECRET}@h/x",
        f"postgresql://u/v:{SECRET}@h/x",
        f"postgresql://u:{SECRET}@127.0.0.1:1/x?nope={SECRET}",
        f"mysql://u:{SECRET}@h/x",
        f"postgresql+asyncpg://u:{SECRET}@h/x",
        "sqlite://",
        f"sqlite:///x.db?mode={SECRET}",
    ],
)
def test_a_url_that_is_none_is_refused_and_never_quoted(
    project: Path, url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    for arguments in (["status"], ["run"]):
        assert execute(arguments) == 2
        heard = capsys.readouterr()
        assert SECRET not in heard.out + heard.err
        assert "DATABASE_URL" in heard.err and "1 fault;" in heard.err
    assert not (project / ".tuning").exists()


@pytest.mark.slow
def test_a_flag_goes_before_the_environment_before_the_file(project: Path) -> None:
    first, second = project / "a.db", project / "b.db"  # which are missing, as a message says
    flag = call(
        master("status", "--database-url", f"sqlite:///{first}"),
        project,
        DATABASE_URL=f"sqlite:///{second}",
    )
    variable = call(master("status"), project, DATABASE_URL=f"sqlite:///{second}")
    assert str(first) in flag.stderr and str(second) in variable.stderr
    elsewhere = call(master("status"), project.parent, SPSA_CONFIG=str(project / "config.toml"))
    assert elsewhere.returncode == 3 and str(project / "spsa.db") in elsewhere.stderr


def test_another_schema_and_a_file_that_is_no_database(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project / "spsa.db"
    upgrade(f"sqlite:///{path}")
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    for arguments in (["status"], ["run"], ["db", "upgrade"]):
        assert execute(arguments) == 3
        assert "the tables of another version of this program" in capsys.readouterr().err
    path.write_bytes(b"no database at all " * 1000)
    for arguments in (["status"], ["run"]):
        assert execute(arguments) == 2
        assert "file is not a database" in capsys.readouterr().err


@pytest.mark.slow
def test_output_that_cannot_be_written_is_a_sentence(project: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            master("params", "show"),
            cwd=project,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1 and "No space left" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_error_to_talk_about(project: Path) -> None:
    writing = subprocess.Popen(
        master("params", "show"),
        cwd=project,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert writing.stdout is not None and writing.stderr is not None
    writing.stdout.close()
    assert writing.stderr.read() == b""
    writing.wait(120)


@pytest.mark.slow
def test_a_terminal_of_ascii_gets_the_numbers(project: Path) -> None:
    done = call(worker("--help"), project, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    shown = call(master("params", "show", "--json"), project, PYTHONIOENCODING="ascii")
    assert len(json.loads(shown.stdout)["parameters"]) == 2


@pytest.mark.slow
def test_the_patch_of_the_values_applies(project: Path) -> None:
    assert call(master("params", "diff"), project).stdout == ""
    text = (project / "params.toml").read_text().replace("value = 200", "value = 210")
    (project / "params.toml").write_text(text)
    patch = call(master("params", "diff"), project).stdout
    engine = project / "engine"
    subprocess.run(["git", "init", "-q", "."], cwd=engine, check=True)
    subprocess.run(["git", "apply"], cwd=engine, input=patch, text=True, check=True)
    assert "MARGIN: i32 = 210;" in (engine / "src" / "engine_constants.rs").read_text()


def test_the_modules_run_as_the_scripts_do(tmp_path: Path) -> None:
    for module in ("spsa.master", "worker"):
        done = call([sys.executable, "-m", module, "--version"], tmp_path)
        assert done.returncode == 0 and "0.1.0" in done.stdout
    assert (ROOT / "spsa").is_dir()
