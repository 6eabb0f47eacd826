"""Every command: its help, its exit codes, and what it leaves behind."""

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from console import call, commands, environment, master, worker
from shell import Shell

from spsa.cli import cli
from spsa.db.migrate import upgrade

MOST_COMMANDS, MOST_OPTIONS = 28, 150
"""Of `spsa-master`: what one person can learn."""

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


@pytest.mark.usefixtures("project")
def test_what_the_command_line_does_not_know_is_usage(transcript):
    said = transcript("what the command line does not know is usage", **{"no UTF-8": "\udcff"})
    assert {(one.code, one.out) for one in said} == {(2, "")}


@pytest.mark.usefixtures("folder")
def test_without_a_configuration_each_command_says_so(transcript):
    transcript.refused("without a configuration each command says so")


def test_what_database_a_command_needs(project, transcript):
    transcript.refused("a command that looks needs a database")
    file = project / "spsa.db"
    upgrade(f"sqlite:///{file}")
    transcript("a command that looks needs a run")
    with closing(Shell(f"sqlite:///{file}")) as sql:
        ((schema,),) = sql("SELECT version_num FROM alembic_version")
        sql("UPDATE alembic_version SET version_num = '9999'")
    transcript("tables of another version", schema=schema)
    file.write_bytes(b"no database at all " * 1000)
    transcript("a file that is no database")


def test_an_option_goes_before_the_environment_before_the_file(project, transcript, monkeypatch):
    """None of the databases is there, as each message says."""
    transcript("an option goes before the environment before the file")
    monkeypatch.chdir(project / "engine")
    transcript("a path in config.toml is from its folder", project=project)


def test_a_url_of_no_database_is_named_by_where_it_is_written(project, transcript):
    url = "mysql://u:s3cret@h/d"
    transcript("a URL of no database is named by where it is written", url=url)
    for option, variables in ((("--database-url", url), {}), ((), {"DATABASE_URL_FILE": "url"})):
        playing = call(worker("--spsa", "--once", *option), project, **variables)
        assert playing.returncode == 2 and "s3cret" not in playing.stderr
        assert "url: " in playing.stderr and "is not the URL of a database" in playing.stderr


@pytest.mark.slow
def test_output_that_cannot_be_written_is_a_sentence_and_a_reader_that_leaves_is_none(project):
    show = {"args": master("params", "show"), "cwd": project, "env": environment()}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(**show, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "No space left" in done.stderr
    assert "Traceback" not in done.stderr
    writing = subprocess.Popen(**show, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert writing.stdout is not None and writing.stderr is not None
    writing.stdout.close()
    assert writing.stderr.read() == b""
    writing.wait(120)
    params = project / "params.toml"
    params.write_text(params.read_text().replace("value", 'group = "Königin"\nvalue', 1))
    told = call(master("params", "show"), project, PYTHONIOENCODING="ascii")
    assert told.returncode == 0 and "K?nigin" in told.stdout
