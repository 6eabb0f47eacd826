"""Every command: its help, its exit codes, and what it leaves behind."""

import subprocess
import sys
from pathlib import Path

import click
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from console import call, commands, environment, master, worker

from spsa.cli import cli
from spsa.db.migrate import upgrade

MOST_COMMANDS, MOST_OPTIONS = 28, 150
"""Of `spsa-master`: what one person can learn."""

READERS = [
    ["status", "--watch"],
    ["params", "diff", "--run", "small"],
    ["validate"],
    ["pause"],
    ["doctor"],
]
COMMANDS = commands()


def options_of(words):
    return [one for one in COMMANDS[words].params if isinstance(one, click.Option)]


def test_the_commands_are_as_few_as_a_person_can_learn():
    assert len(COMMANDS) <= MOST_COMMANDS
    assert sum(len(options_of(words)) for words in COMMANDS) <= MOST_OPTIONS


@pytest.mark.parametrize("words", [(), ("params",), ("workers",), *COMMANDS], ids=" ".join)
def test_every_command_has_help(words):
    shown = CliRunner().invoke(cli, [*words, "--help"])
    assert shown.exit_code == 0 and shown.output.startswith("Usage:")
    assert "..." not in shown.output.partition("Commands:")[2], "a summary that was cut"
    for option in options_of(words) if words in COMMANDS else ():
        assert option.help or option.name in ("alpha", "gamma", "seed"), option.name


@pytest.mark.parametrize(
    "start", ["from spsa.cli import main; main()", "from worker.cli import main; main()"]
)
def test_help_loads_nothing_heavy(start, tmp_path):
    heavy = {"sqlalchemy", "numpy", "alembic", "rich", "chess", "tomlkit", "tree_sitter"}
    code = (
        f"import atexit, sys; atexit.register(lambda: print(*({heavy!r} & set(sys.modules))));"
        f"sys.argv = ['x', '--help']; {start}"
    )
    done = call([sys.executable, "-c", code], tmp_path)
    assert done.returncode == 0 and "Usage:" in done.stdout
    assert done.stdout.splitlines()[-1] == ""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nonsense", "No such command"),
        ("statsu", "did you mean 'status'?"),
        ("params nonsense", "No such command"),
        ("status --nope", "No such option"),
        ("status --watch --interval 0", "is not in the range"),
        ("set --iterations 0", "is not in the range"),
        ("set --share 0", "is not in the range"),
        ("set --share nan", "nan is no number"),
        ("set --priority 1001", "is not in the range"),
        ("validate --games 1", "is not in the range"),
        ("validate --sprt 5 0", "ELO0 has to be less than ELO1"),
        ("validate --sprt nan 5", "normalised Elo is from"),
        ("validate --also soon", "is not [MOVES/]BASE[+INC]"),
        ("run --from small --run other --doubt 0.5", "is not in the range"),
        ("run --doubt 3", "name that with --from RUN"),
        (f"run --seed {2**63}", "is not in the range"),
        ("plan --draws 1", "is not in the range"),
        ("params diff --theta averaged", "--theta is about a run"),
        ("params diff --run small --theta best", "'best' is not one of"),
        ("probe --only nothing", "'nothing' is no active parameter"),
        ("workers exclude", "Missing argument 'MACHINE'"),
        ("doctor --run \udcff", "is not UTF-8"),
    ],
)
def test_what_the_command_line_does_not_know_is_usage(project, line, said, ask):
    heard = ask(*line.split())
    assert (heard.code, heard.out) == (2, "") and "Error:" in heard.err
    assert said in " ".join(heard.err.split())


@pytest.mark.parametrize("words", [*READERS, ["run"], ["params", "show"], ["db", "upgrade"]])
def test_without_a_configuration_each_command_says_so(folder, words, ask):
    heard = ask(*words)
    assert (heard.code, heard.out) == (2, "")
    assert heard.err.startswith("config.toml: [config.toml] does not exist")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("words", READERS)
def test_a_command_that_looks_needs_a_database_with_a_run(project, words, ask):
    before = sorted(project.iterdir())
    heard = ask(*words)
    assert heard.code == 3
    assert "there is no such file yet" in heard.err and "spsa-master run" in heard.err
    assert sorted(project.iterdir()) == before
    upgrade(f"sqlite:///{project / 'spsa.db'}")
    assert ask(*words).code == (0 if words == ["doctor"] else 3)


def test_another_schema_and_a_file_that_is_no_database(project, ask):
    path = project / "spsa.db"
    upgrade(f"sqlite:///{path}")
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    for words in (["status"], ["run"], ["db", "upgrade"]):
        heard = ask(*words)
        assert heard.code == 3 and "the tables of another version of this program" in heard.err
    path.write_bytes(b"no database at all " * 1000)
    for words in (["status"], ["run"]):
        heard = ask(*words)
        assert heard.code == 2 and "file is not a database" in heard.err
    assert ask("status", "--database-url", "sqlite:////").code == 5, "it may come back"


@pytest.mark.parametrize(
    ("flag", "variable", "file", "config", "opened"),
    [
        ("a.db", "b.db", "c.db", "config.toml", "a.db"),
        (None, "b.db", "c.db", "config.toml", "b.db"),
        (None, None, "c.db", "config.toml", "c.db"),
        (None, None, None, "../config.toml", "spsa.db"),
    ],
)
def test_a_flag_goes_before_the_environment_before_the_file(
    project, flag, variable, file, config, opened, ask, monkeypatch
):
    """None of them is there, as a message says."""
    if config.startswith(".."):
        (project / "below").mkdir()
        monkeypatch.chdir(project / "below")
    monkeypatch.setenv("SPSA_CONFIG", config)
    if variable:
        monkeypatch.setenv("DATABASE_URL", f"sqlite:///{project / variable}")
    if file:
        (project / "url").write_text(f"sqlite:///{project / file}\n")
        monkeypatch.setenv("DATABASE_URL_FILE", "url")
    heard = ask("status", *(["--database-url", f"sqlite:///{project / flag}"] if flag else []))
    assert heard.code == 3 and str(project / opened) in heard.err


WRONG_URL = "mysql://u:s3cret@h/d"


@pytest.mark.parametrize(
    ("place", "option", "variables"),
    [
        ("--database-url", ("--database-url", WRONG_URL), {}),
        ("DATABASE_URL", (), {"DATABASE_URL": WRONG_URL}),
        ("url", (), {"DATABASE_URL_FILE": "url"}),
        ("config.toml", (), {}),
    ],
)
def test_a_url_of_no_database_is_named_by_where_it_is_written(
    project, place, option, variables, ask, monkeypatch
):
    (project / "url").write_text(WRONG_URL)
    if place == "config.toml":
        config = (project / place).read_text().replace("sqlite:///spsa.db", WRONG_URL)
        (project / place).write_text(config)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    said = [ask(command, *option) for command in ("status", "run")]
    playing = call(worker("--spsa", "--once", *option), project, **variables)
    for err in (*(one.err for one in said), playing.stderr):
        assert f"{place}:" in err and "is not the URL of a database" in err
        assert "s3cret" not in err
    assert [*(one.code for one in said), playing.returncode] == [2, 2, 2]


@pytest.mark.slow
def test_output_that_cannot_be_written_is_a_sentence(project):
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
def test_a_reader_that_leaves_early_is_no_error_to_talk_about(project):
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    writing = subprocess.Popen(master("params", "show"), cwd=project, env=environment(), **piped)
    assert writing.stdout is not None and writing.stderr is not None
    writing.stdout.close()
    assert writing.stderr.read() == b""
    writing.wait(120)
