"""What URLs of databases mean, and that a refusal quotes nothing of them."""

import os
from pathlib import Path

import pytest
import sqlalchemy as sa
from console import call, master, worker, write_project
from hypothesis import given
from hypothesis import strategies as st

from spsa.db.database import displayed, parse_url, parsed, url_in, warnings
from spsa.errors import InvalidInput

SECRET = "s3cret"


@pytest.mark.parametrize(
    ("text", "user", "password", "host", "port", "database"),
    [
        ("postgresql://h/d", None, None, "h", None, "d"),
        ("postgres://u@h:1/d", "u", None, "h", 1, "d"),
        ("POSTGRESQL+psycopg2://u:p@h/d", "u", "p", "h", None, "d"),
        ("postgresql://u:p%40%2F%3a%23@h/d", "u", "p@/:#", "h", None, "d"),
        ("postgresql://u:p:q@h/d", "u", "p:q", "h", None, "d"),
        ("postgresql://u:[p]@h/d", "u", "[p]", "h", None, "d"),
        ("postgresql://u:@h/d", "u", None, "h", None, "d"),
        ("postgresql://u@[::1]:5433/d", "u", None, "::1", 5433, "d"),
        ("postgresql://u@[fe80::1%25eth0]/d", "u", None, "fe80::1%eth0", None, "d"),
        ("postgresql://%2Fvar%2Frun/d", None, None, "/var/run", None, "d"),
        ("postgresql:///d", None, None, None, None, "d"),
        ("postgresql:///d?host=/run/pg&port=5433", None, None, "/run/pg", 5433, "d"),
        ("postgresql:///d?user=u&password=p", "u", "p", None, None, "d"),
        ("postgresql://u@h", "u", None, "h", None, None),
        ("postgresql://u@h/d%20e", "u", None, "h", None, "d e"),
    ],
)  # fmt: skip
def test_a_url_means_what_it_says(
    text: str,
    user: str | None,
    password: str | None,
    host: str | None,
    port: int | None,
    database: str | None,
) -> None:
    url = parsed(text)
    found = (url.username, url.password, url.host, url.port, url.database)
    assert found == (user, password, host, port, database)


@pytest.mark.parametrize(
    ("text", "hosts", "ports"),
    [
        ("postgres://a,b:2,[::3]:4/d", "a,b,::3", ",2,4"),
        ("postgresql:///d?host=a,b&port=1,2", "a,b", "1,2"),
        ("postgresql:///d?host=a,b&port=1", "a,b", "1,1"),
    ],
)
def test_several_hosts_are_handed_to_the_driver(text: str, hosts: str, ports: str) -> None:
    assert parsed(text).query == {
        "host": hosts,
        "port": ports,
        "target_session_attrs": "read-write",
    }


def test_a_file_is_a_path() -> None:
    url = parsed("sqlite+pysqlite:///a b.db?timeout=5")
    assert (str(url), url.database, url.query) == (
        "sqlite:///a b.db?timeout=5", "a b.db", {"timeout": "5"}
    )  # fmt: skip
    assert parsed("sqlite:////x/y.db").database == "/x/y.db"


TAILS = """
    @x@h/d %zz@h/d @h:abc/d @h:99999/d @[::1/d @h/d?sslmode=maybe /x@h/d #x@h/d ?x@h/d
    ?sslmode=x@h/d %@h/d %4@h/d %ff@h/d %00@h/d @h:0/d @h:-1/d @h:５４３２/d @h:5432:5433/d @[]/d
    @[::1]x/d @::1/d @h!/d @-h/d @hö/d @h/d/e @h/d#e @h/d?sslmode @h/d?=x
    @h/d?sslmode=disable&sslmode=require @h/d?service=x @h/d?user=other @h/d?password=other
    @h/d?host=other @h/d?dbname=e
"""
"""What may follow `postgresql://u:SECRET`; drivers quoted the password of some of these."""

MALFORMED = [
    *(f"postgresql://u:{SECRET}{tail}" for tail in TAILS.split()),
    f"postgress://u:{SECRET}@h/d",
    f"postgresql://u:{SECRET}@h/d?nosuch={SECRET}",
    f"postgresql:/u:{SECRET}@h/d",
    "",
    SECRET,
    f"{SECRET}://h/d",
    f"u:{SECRET}@h/d",
    f"host=h user=u password={SECRET} dbname=d",
    f"postgresql://u:{SECRET}\0@h/d",
    f"postgresql://u:{SECRET} x@h/d",
    f"postgresql://u:{SECRET}\n@h/d",
    f"postgresql://u:{SECRET}\x1b[2J@h/d",
    f"postgresql://u:{SECRET}@h:/d:{SECRET}/x",
    f"postgresql:///d?password={SECRET}&host=a,b,c&port=1,2",
    f"postgresql://h/d?{SECRET}",
    f"postgresql://h/d?{SECRET}=1",
    f"postgresql+psycopg://u:{SECRET}@h/d",
    f"postgresql+asyncpg://u:{SECRET}@h/d",
    f"mysql://u:{SECRET}@h/d",
    f"mysql+{SECRET}://u:{SECRET}@h/d",
    f"http://u:{SECRET}@h/d",
    f"jdbc:postgresql://u:{SECRET}@h/d",
    f"postgresql//u:{SECRET}@h/d",
    f"postgresql:u:{SECRET}@h/d",
    f"://u:{SECRET}@h/d",
    f"'postgresql://u:{SECRET}@h/d'",
    f"sqlite://{SECRET}/x.db",
    "sqlite://",
    "sqlite:///",
    "sqlite:///:memory:",
    f"sqlite:///x?{SECRET}=1",
    f"sqlite:///x?timeout={SECRET}",
    "postgresql://u:" + SECRET * 1000 + "@h/d",
]


@pytest.mark.parametrize("text", MALFORMED)
def test_what_is_wrong_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_url(text)
    (line,) = str(refusal.value).splitlines()
    assert SECRET not in line
    assert line.startswith("DATABASE_URL: [database.url] ")
    assert len(line) < 350


@pytest.mark.slow
@given(text=st.text())
def test_any_text_is_a_url_or_refused(text: str) -> None:
    for written in (
        text,
        f"postgresql://{text}",
        f"postgresql://u:{text}@h/d",
        f"sqlite:///{text}",
    ):
        try:
            url = parse_url(written)
        except InvalidInput:
            continue
        assert isinstance(url, sa.URL)


@given(
    password=st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1)
)
def test_every_password_can_be_written(password: str) -> None:
    written = "".join(f"%{byte:02X}" for byte in password.encode())
    url = parse_url(f"postgresql://u:{written}@h/d")
    assert (url.password, url.host) == (password, "h")
    assert displayed(url) == "postgresql+psycopg2://u:***@h/d"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"postgresql://u:{SECRET}@a:1,b/d", "postgresql+psycopg2://u:***@a:1,b/d"),
        (f"postgresql://a,b/d?password={SECRET}", "postgresql+psycopg2://a,b/d"),
        (f"postgresql:///d?user=u&password={SECRET}", "postgresql+psycopg2://u:***@/d"),
        (f"postgresql://u@h/d?sslpassword={SECRET}", "postgresql+psycopg2://u@h/d"),
    ],
)
def test_what_is_shown_holds_no_secret(text: str, shown: str) -> None:
    found = displayed(parse_url(text))
    assert SECRET not in found
    assert found.replace(":***@/", "@/") == shown.replace(":***@/", "@/") or "***" in found


def test_a_value_never_shows_its_password() -> None:
    assert SECRET not in repr(parsed(f"postgresql://u:{SECRET}@h/d"))


def test_the_second_host_is_asked_when_the_first_is_not_there(postgresql_url: str) -> None:
    address = parse_url(postgresql_url)
    both = f"postgresql://postgres@127.0.0.1:1,127.0.0.1:{address.port}/{address.database}"
    engine = sa.create_engine(parse_url(both))
    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT current_database()")) == address.database
    engine.dispose()


def test_a_password_on_a_command_line_is_warned_of() -> None:
    (warning,) = warnings(f"postgresql://u:{SECRET}@h/d", typed=True)
    assert "DATABASE_URL" in warning and SECRET not in warning
    for url, typed in (("postgresql://u@h/d", True), ("sqlite:///x.db", True)):
        assert list(warnings(url, typed=typed)) == []
    assert list(warnings(f"postgresql://u:{SECRET}@h/d", typed=False)) == []


@pytest.mark.parametrize("content", [b"", b"\n", b"a\nb", b"\xff"])
def test_a_file_that_holds_no_url_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "url"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="nothing else"):
        url_in(path)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_project(tmp_path)
    (tmp_path / "right").write_text(f"sqlite:///{tmp_path}/spsa.db\n")
    return tmp_path


@pytest.mark.slow
def test_the_url_may_come_from_a_file(project: Path) -> None:
    wrong = f"postgresql://u:{SECRET}@127.0.0.1:1/d"
    done = call(master("db", "upgrade"), project, DATABASE_URL_FILE="right")
    assert done.returncode == 0, done.stderr
    assert (project / "spsa.db").exists()
    flags = ("--spsa", "--once", "-c", "1", "--database-url-file", "right")
    assert call(worker(*flags), project, DATABASE_URL=wrong).returncode == 3
    for command in (master("doctor"), worker("--spsa", "--once", "-c", "1")):
        done = call(command, project, DATABASE_URL_FILE="right")
        assert done.returncode in (0, 3), done.stderr


def test_a_url_and_a_file_of_one_are_too_much(project: Path) -> None:
    both = ("--database-url", "sqlite:///x", "--database-url-file", "right")
    done = call(worker("--spsa", "--once", "-c", "1", *both), project)
    assert done.returncode == 2
    assert "not both" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("program", [master("doctor"), worker("--spsa", "--once", "-c", "1")])
def test_a_password_in_the_arguments_brings_one_warning(program: list[str], project: Path) -> None:
    url = f"postgresql://u:{SECRET}@127.0.0.1:1/d"
    done = call([*program, "--database-url", url], project)
    assert done.returncode == 5
    warned, failed = done.stderr.splitlines()
    assert warned.startswith("warning: every user of this machine can read a command line")
    assert SECRET not in done.stderr and "127.0.0.1:1" in failed
    assert "warning" not in call(program, project, DATABASE_URL=url).stderr


def test_a_worker_hands_its_url_on_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    from worker.direct import private_url

    monkeypatch.setenv("DATABASE_URL", "sqlite:///x.db")
    assert private_url(None, None) == "sqlite:///x.db"
    assert "DATABASE_URL" not in os.environ
