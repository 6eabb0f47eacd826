"""What the tests of everything that touches a database share.

`database_url`        a fresh, migrated database; every test runs on SQLite and on PostgreSQL
`empty_database_url`  the same without any table
`shared_database_url` the same for all tests of a module, which leave nothing behind
`store`               `database_url`, opened
`sqlite_url`          a fresh, migrated SQLite database, where one kind is enough
`sql`                 runs SQL text on the database of the test: `sql("UPDATE ...", name=value)`
`expire`              makes leases run out: `expire(claim.batch_id)`, `expire(run_id=...)`
`project`             the present folder, with config.toml, params.toml and an engine's source
`project_store`       its database, with its tables, opened
`ask`                 calls `spsa-master` within this process: `ask("status", "--json")`
`story`               carries out calls of the store, or of the module's `STORY`: see `stories`
`told`                the same on `project_store`, and commands of programs
`transcript`          carries out the commands of a text file beside the test: see `transcripts`

The examples to fill them with are plain functions of `builders`: `new_run(**over)`,
`new_iteration(**over)`, `stage(store)`, ...

PostgreSQL is the server of SPSA_TEST_DATABASE_URL (a URL without a database's name, of somebody who
may create databases), else one that is started for this session from the binaries of the machine.
Without binaries its tests are skipped; with CI=true they fail, because there it has to be there.
"""

import os
import shutil
import signal
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from asking import Store
from console import OWN, Ask, Said, end_all, write_project
from engines import faulty
from hypothesis import HealthCheck, settings
from postgres_server import binaries, running_server
from shell import Shell
from stories import Story
from transcripts import Transcript, typed

from spsa.cli import execute
from spsa.db.migrate import upgrade
from spsa.db.url import parse_url

DATABASES = ("sqlite", "postgresql")


def pytest_configure() -> None:
    """Programs that are started here hear Ctrl-C, also where a shell began all this with `&`.

    Such a shell has the signal ignored, and whoever is started inherits that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _be_patient()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests as slow or long in the cases that `slow_on` or `long_on` names, as a database.

    What is no test of the database itself is slow on PostgreSQL.
    """
    for item in items:
        if "postgresql" in item.name and item.path.parent.name != "db":
            item.add_marker("slow")
        for kind in ("slow", "long"):
            marks = item.iter_markers(f"{kind}_on")
            if any(name in item.name for mark in marks for name in mark.args):
                item.add_marker(kind)


for variable in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):  # of `make test`, for no make of a test
    os.environ.pop(variable, None)

SEARCHING = ("SPSA_TEST_LONG", "SPSA_TEST_EXAMPLES", "SPSA_TEST_SEED")


def _be_patient() -> None:
    """Let hypothesis judge what is true of an example, and not how long a busy machine took.

    Its examples are those of every other session, but in a long search, which is for new ones.
    """
    settings.register_profile(
        "patient",
        settings(),
        deadline=None,
        derandomize=not any(map(os.environ.get, SEARCHING)),
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("patient")


@pytest.fixture(autouse=True)
def bystanders() -> Iterator[None]:
    """Let `engines.faulty.children` count only what the test itself starts, and end that."""
    faulty.BYSTANDERS.clear()
    faulty.BYSTANDERS.update(faulty.all_children())
    yield
    end_all()


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The URL of a server where databases may be made, without a database's name."""
    given = os.environ.get("SPSA_TEST_DATABASE_URL")
    if given:
        yield given.rstrip("/")
        return
    folder = binaries()
    if folder is None:
        reason = "no PostgreSQL: neither SPSA_TEST_DATABASE_URL nor initdb in PATH"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    with running_server(folder) as url:
        yield url


@pytest.fixture(scope="session")
def postgresql_template(postgresql_server: str) -> Iterator[str]:
    """The name of a migrated database that others are copied from."""
    with _postgresql_database(postgresql_server) as url:
        upgrade(url)
        yield url.rpartition("/")[2]


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated database file that others are copied from."""
    path = tmp_path_factory.mktemp("template") / "spsa.db"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    return f"sqlite:///{shutil.copy(sqlite_template, tmp_path / 'spsa.db')}"


@pytest.fixture
def postgresql_url(postgresql_server: str, postgresql_template: str) -> Iterator[str]:
    with _postgresql_database(postgresql_server, postgresql_template) as url:
        yield url


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture
def empty_sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'empty.db'}"


@pytest.fixture
def empty_postgresql_url(postgresql_server: str) -> Iterator[str]:
    with _postgresql_database(postgresql_server) as url:
        yield url


@pytest.fixture(params=DATABASES)
def empty_database_url(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(f"empty_{request.param}_url")


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with Store(database_url, durable=False) as opened:
        yield opened


@pytest.fixture
def sqlite_store(sqlite_url: str) -> Iterator[Store]:
    with Store(sqlite_url, durable=False) as opened:
        yield opened


@pytest.fixture
def sql(request: pytest.FixtureRequest) -> Iterator[Shell]:
    """Statements as somebody with a shell on the test's database would write them."""
    wanted = "database_url" if "database_url" in request.fixturenames else "sqlite_url"
    shell = Shell(request.getfixturevalue(wanted))
    yield shell
    shell.close()


@pytest.fixture
def expire(sql: Shell) -> Callable[..., None]:
    """Time passes for one lease: a batch's, or a master's."""
    return sql.expire


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder, with no variable that names another one."""
    monkeypatch.chdir(tmp_path)
    for variable in OWN:
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


@pytest.fixture
def project(folder: Path) -> Path:
    """Both files and an engine's source."""
    write_project(folder)
    return folder


@pytest.fixture
def project_store(project: Path, sqlite_template: Path) -> Iterator[Store]:
    """The database of the project, with its tables, opened."""
    shutil.copy(sqlite_template, project / "spsa.db")
    with Store(f"sqlite:///{project / 'spsa.db'}", durable=False) as store:
        yield store


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    def called(*words: object) -> Said:
        capsys.readouterr()
        code = execute([str(word) for word in words])
        heard = capsys.readouterr()
        return Said(code, heard.out, heard.err)

    return called


@pytest.fixture
def transcript(
    ask: Ask, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Transcript:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    return Transcript(partial(typed, ask), request.path.with_suffix(".txt"))


@pytest.fixture
def story(store: Store, sql: Shell, request: pytest.FixtureRequest) -> Transcript:
    made = getattr(request.module, "STORY", Story)
    return Transcript(made(store, sql), request.path.with_suffix(".txt"))


@pytest.fixture
def project_story(project_store: Store, request: pytest.FixtureRequest) -> Iterator[Story]:
    with closing(Shell(project_store.where)) as sql:
        yield getattr(request.module, "STORY", Story)(project_store, sql)


@pytest.fixture
def told(project_story: Story, transcript: Transcript, ask: Ask) -> Transcript:
    def carried_out(line: str) -> Said:
        is_program = "spsa-master" in line or line.split()[0] in PROGRAMS
        return typed(ask, line) if is_program else project_story(line)

    return replace(transcript, run=carried_out)


PROGRAMS = {"cat", "cp", "grep", "ls", "mkdir", "mv", "printf", "rm"}


@pytest.fixture(scope="module", params=DATABASES)
def shared_database_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A migrated database for a module whose tests leave nothing behind."""
    if request.param == "sqlite":
        template = request.getfixturevalue("sqlite_template")
        folder = tmp_path_factory.mktemp("shared")
        yield f"sqlite:///{shutil.copy(template, folder / 'spsa.db')}"
        return
    server = request.getfixturevalue("postgresql_server")
    with _postgresql_database(server, request.getfixturevalue("postgresql_template")) as url:
        yield url


@contextmanager
def _postgresql_database(server: str, template: str = "template1") -> Iterator[str]:
    """A database of a random name that is dropped in the end, whoever is still connected."""
    name = f"spsa_test_{uuid.uuid4().hex[:12]}"
    engine = sa.create_engine(
        parse_url(f"{server}/postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool
    )
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {template}")
    yield f"{server}/{name}"
    with engine.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
