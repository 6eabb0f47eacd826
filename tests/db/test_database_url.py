"""What URLs of databases mean, that a server elsewhere proves its name, and that no secret is said.

A server "elsewhere" is one of this machine that is called by a name: `hostaddr` says where it is,
and libpq holds the name against the certificate.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa
from console import FIXTURES, ROOT, call, environment, master, worker
from golden import compare_cases
from hypothesis import given
from hypothesis import strategies as st
from postgres_server import CrashingServer, account, binaries

from spsa.cli import COMMANDS, execute
from spsa.db.database import create_engine, translated
from spsa.db.url import displayed, parse_url, url_in, with_absolute_path
from spsa.errors import DatabaseUnreachable, InvalidInput

SECRET = "s3cret"
NAMED = {"{secret}": SECRET, "{secrets}": SECRET * 1000, "{newline}": "\n"}


def test_what_a_url_means_or_why_it_is_refused():
    def told(files):
        text = files.pop("url")
        for name, meant in NAMED.items():
            text = text.replace(name, meant)
        if "in" in files:
            text = with_absolute_path(text, Path(files.pop("in")))
        with pytest.MonkeyPatch.context() as patch:
            for name, value in files.items():
                patch.setenv(name, value)
            try:
                url = parse_url(text)
            except InvalidInput as refused:
                (line,) = str(refused).splitlines()
                assert SECRET not in line and len(line) < 350
                yield line
            else:
                parts = url.translate_connect_args() | url.query
                own = (
                    {"sslrootcert": "{of the system}"}
                    if Path(str(parts.get("sslrootcert"))).is_file()
                    else {}
                )
                words = (f"{name}={value}" for name, value in (parts | own).items())
                yield " ".join([f"{url.drivername}:", *words])

    compare_cases(Path(__file__).with_name("urls.txt"), told)


@given(
    password=st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1)
)
def test_every_password_can_be_written_and_is_not_shown(password):
    written = "".join(f"%{byte:02X}" for byte in password.encode())
    url = parse_url(f"postgresql://u:{written}@h:1/d?password={written}")
    assert (url.password, url.host) == (password, "h")
    assert displayed(url) == "postgresql://u:***@h:1/d"


@pytest.mark.parametrize("content", [b"", b"\n", b"a\nb", b"\xff", b"mysql://h/d"])
def test_a_file_that_holds_no_url_is_refused(content, tmp_path):
    path = tmp_path / "url"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"/url: .*(nothing else|is not the URL)"):
        url_in(path)


PLAYS_ONCE = ("--spsa", "--once", "-c", "1")


@pytest.mark.slow
def test_the_url_may_come_from_a_file(project):
    (project / "right").write_text(f"sqlite:///{project}/spsa.db\n")
    wrong = f"postgresql://u:{SECRET}@127.0.0.1:1/d"
    done = call(master("db", "upgrade"), project, DATABASE_URL_FILE="right")
    assert done.returncode == 0, done.stderr
    assert (project / "spsa.db").exists()
    flags = (*PLAYS_ONCE, "--database-url-file", "right")
    assert call(worker(*flags), project, DATABASE_URL=wrong).returncode == 3
    for command in (master("doctor"), worker(*PLAYS_ONCE)):
        done = call(command, project, DATABASE_URL_FILE="right")
        assert done.returncode in (0, 3), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("program", [master("doctor"), worker(*PLAYS_ONCE)])
def test_a_password_in_the_arguments_brings_one_warning(program, project):
    url = f"postgresql://u:{SECRET}@127.0.0.1:1/d"
    done = call([*program, "--database-url", url], project)
    assert done.returncode == 5
    warned, failed = done.stderr.splitlines()
    assert warned.startswith("warning: every user of this machine can read a command line")
    assert SECRET not in done.stderr and "127.0.0.1:1" in failed
    assert "warning" not in call(program, project, DATABASE_URL=url).stderr


def test_a_worker_hands_its_url_on_to_nobody(monkeypatch):
    from worker.direct import private_url

    monkeypatch.setenv("DATABASE_URL", "sqlite:///x.db")
    assert private_url(None, None) == "sqlite:///x.db"
    assert "DATABASE_URL" not in os.environ


NAME = "db.test"


@dataclass(frozen=True)
class Secured:
    """A PostgreSQL server that has a certificate of `ca` for NAME, and wants a password."""

    port: int
    ca: Path
    folder: Path  # of its socket

    def url(self, query="", *, name=NAME, password=SECRET):
        where = f"{name}:{self.port}/postgres?hostaddr=127.0.0.1"
        return f"postgresql://tuner:{password}@{where}{query and f'&{query}'}"


def certify(folder):
    """An authority and a certificate for NAME by the commands of docs/security.md; a stranger."""
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    (commands,) = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    commands = commands.replace("db.example.org", NAME)
    first = commands.partition("openssl req -x509 -newkey ec")[2].partition("\nopenssl")[0]
    stranger = f"openssl req -x509 -newkey ec{first}".replace("ca.", "stranger.")
    for script in (commands, stranger):
        subprocess.run(["sh", "-ec", script], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    found = binaries()
    if found is None or shutil.which("openssl") is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("no PostgreSQL or openssl")
    certificates = tmp_path_factory.mktemp("certificates")
    certify(certificates)
    folder = Path(os.environ.get("XDG_RUNTIME_DIR", "/tmp")) / f"spsa-tls-{os.getpid()}"
    folder.mkdir(mode=0o700)
    names = ("server.key", "server.crt")
    for file in (FIXTURES / "hba.conf", *map(certificates.joinpath, names)):
        copy = Path(shutil.copy(file, folder))
        copy.chmod(0o600)
        if owner := account():
            shutil.chown(copy, owner["user"], owner["group"])
    files = {"ssl_cert_file": "server.crt", "ssl_key_file": "server.key", "hba_file": "hba.conf"}
    settings = [f"{key}={folder / name}" for key, name in files.items()]
    settings += ["ssl=on", f"unix_socket_directories={folder}"]
    running = CrashingServer(found, folder, *settings)
    try:
        running.start()
        with sa.create_engine(parse_url(f"{running.url}/postgres")).begin() as connection:
            connection.exec_driver_sql(f"CREATE ROLE tuner LOGIN SUPERUSER PASSWORD '{SECRET}'")
        yield Secured(running.port, certificates / "ca.crt", folder)
    finally:
        running.crash()
        shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def nobodys_home(tmp_path, monkeypatch):
    """No ~/.postgresql or ~/.pgpass of the user changes these tests."""
    monkeypatch.setenv("HOME", str(tmp_path))


def reached(url):
    """How the server says the connection is: 'TLSv1.3' or ''."""
    address = parse_url(url)
    engine = create_engine(address, durable=False)
    try:
        with translated(address), engine.begin() as connection:
            version = "SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
            return str(connection.scalar(sa.text(version)) or "")
    finally:
        engine.dispose()


def test_an_authority_of_the_url_or_the_system_is_believed_and_a_weaker_way_taken_if_written(
    secure, monkeypatch
):
    assert reached(secure.url(f"sslrootcert={secure.ca}")).startswith("TLS")
    assert reached(secure.url("sslmode=require")).startswith("TLS")
    assert reached(secure.url("sslmode=disable")) == ""
    monkeypatch.setenv("SSL_CERT_FILE", str(secure.ca))
    assert reached(secure.url()).startswith("TLS")
    monkeypatch.setenv("SSL_CERT_FILE", str(secure.ca.with_name("stranger.crt")))
    (Path.home() / ".postgresql").mkdir()
    shutil.copy(secure.ca, Path.home() / ".postgresql/root.crt")
    assert reached(secure.url()).startswith("TLS")


@pytest.mark.parametrize(
    ("authority", "name", "reason"),
    [
        ("ca", "other.test", "does not match host name"),
        ("stranger", NAME, "certificate verify failed"),
        ("missing", NAME, "root certificate file"),
    ],
)
def test_a_server_that_does_not_prove_its_name_is_refused(authority, name, reason, secure):
    file = secure.ca.with_name(f"{authority}.crt")
    with pytest.raises(DatabaseUnreachable, match=rf"{reason}.*\?sslrootcert="):
        reached(secure.url(f"sslrootcert={file}", name=name))


def test_a_server_without_tls_is_refused(postgresql_url):
    address = parse_url(postgresql_url)
    where = f"{NAME}:{address.port}/{address.database}?hostaddr=127.0.0.1"
    with pytest.raises(DatabaseUnreachable, match=r"does not support SSL.*\?sslmode=disable"):
        reached(f"postgresql://postgres@{where}")
    assert reached(f"postgresql://postgres@{where}&sslmode=disable") == ""
    assert reached(postgresql_url) == ""
    with pytest.raises(InvalidInput, match="invalid dsn"):
        reached(f"{postgresql_url}?nonsense=1")


TRUE = "postgresql://tuner:{secret}@127.0.0.1:{port}/postgres"
WRONG = {
    "password": "postgresql://tuner:{secret}x@127.0.0.1:{port}/postgres",
    "certificate": "postgresql://tuner:{secret}@db.test:{port}/postgres?hostaddr=127.0.0.1",
    "no tables": TRUE,
    "malformed": "postgresql://tuner:{secret}@x@127.0.0.1:{port}/postgres",
}
WITHOUT_A_DATABASE = {"init", "demo", "probe"}
ARGUMENTS = {
    "status": ["--json"],
    "set": ["--iterations", "5"],
    "params": ["diff"],
    "db": ["backup", "copy.db"],
    "plan": ["--json"],
    "purge": ["--worker", "machine", "--reason", "x"],
}
"""What a command needs to get as far as its database; any other is called without arguments."""


@pytest.mark.slow
@pytest.mark.parametrize("wrong", WRONG)
def test_no_output_of_any_command_has_the_secret(
    wrong, secure, project, monkeypatch, capfd, caplog
):
    monkeypatch.setenv("DATABASE_URL", WRONG[wrong].format(secret=SECRET, port=secure.port))
    # `run` makes the tables, and `serve` waits for them
    changing = {"run", "serve"} if wrong == "no tables" else set()
    for name in COMMANDS.keys() - WITHOUT_A_DATABASE - changing:
        code = execute([name, *ARGUMENTS.get(name, [])])
        said = "".join(capfd.readouterr()) + caplog.text
        assert SECRET not in said, name
        assert code in (0, 2, 3, 5), (name, said)
        assert code or name in ("plan", "params"), name


@pytest.mark.slow
def test_a_defect_does_not_show_it_either(project):
    """The traceback of an unexpected error, with the database's own objects in it."""
    defect = (
        "import os; from spsa.db import Store\n"
        "from spsa.db import database\n"
        "def broken(*_, **__): raise RuntimeError(repr(database.parse_url(os.environ['U'])))\n"
        "database.sa.create_engine = broken\n"
        "from spsa.cli import main; main(['doctor'])\n"
    )
    url = f"postgresql://u:{SECRET}@127.0.0.1:1/d"
    start = [sys.executable, "-c", defect]
    for debug in ({}, {"SPSA_DEBUG": "1"}):
        done = subprocess.run(
            start,
            cwd=project,
            env=environment(DATABASE_URL=url, U=url, **debug),
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == 1
        assert "RuntimeError" in done.stderr and SECRET not in done.stderr
