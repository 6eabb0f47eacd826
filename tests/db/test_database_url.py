"""What URLs of databases mean, and that a refusal quotes nothing of them."""

import os

import pytest
from console import call, master, worker
from hypothesis import given
from hypothesis import strategies as st

from spsa.db.url import displayed, parse_url, parsed, url_in, with_absolute_path
from spsa.errors import InvalidInput

SECRET = "s3cret"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("postgresql://h/d", (None, None, "h", None, "d")),
        ("postgres://u@h:1/d", ("u", None, "h", 1, "d")),
        ("POSTGRESQL+psycopg2://u:p@h/d", ("u", "p", "h", None, "d")),
        ("postgresql://u:p%40%2F%3a%23@h/d", ("u", "p@/:#", "h", None, "d")),
        ("postgresql://u@[::1]:5433/d", ("u", None, "::1", 5433, "d")),
        ("postgresql:///d", (None, None, None, None, "d")),
        ("postgresql://u:p/q?r#s@h/d", ("u", "p/q?r#s", "h", None, "d")),
    ],
)
def test_a_url_means_what_it_says(text, said):
    url = parsed(text)
    assert (url.username, url.password, url.host, url.port, url.database) == said


def test_a_file_is_a_path(tmp_path):
    assert str(parsed("sqlite+pysqlite:///a b.db")) == "sqlite:///a b.db"
    assert parsed("sqlite:////x/y.db").database == "/x/y.db"
    assert with_absolute_path("sqlite:///y.db", tmp_path) == f"sqlite:///{tmp_path}/y.db"
    for other in ("sqlite:///:memory:", "postgresql:///y.db", "y.db"):
        assert with_absolute_path(other, tmp_path) == other


MALFORMED = [
    *(f"postgresql://u:{SECRET}{tail}" for tail in ("@x@h/d", "@h:abc/d", "@h/d@x", "", "\n@h/d")),
    *(f"{scheme}://u:{SECRET}@h/d" for scheme in ("postgress", "mysql", "")),
    *(f"host=h password={SECRET} dbname=d", "", f"sqlite://{SECRET}/x.db", "sqlite:///:memory:"),
    *(f"sqlite:///x?{SECRET}=1", "postgresql://u:" + SECRET * 1000 + "@h/d"),
]


@pytest.mark.parametrize("text", MALFORMED)
def test_what_is_wrong_is_refused_and_not_quoted(text):
    with pytest.raises(InvalidInput) as refusal:
        parse_url(text)
    (line,) = str(refusal.value).splitlines()
    assert SECRET not in line
    assert line.startswith("DATABASE_URL: [database.url] ")
    assert len(line) < 350
    assert ("password" in line) != text.startswith("sqlite:"), "advice that is about a server"


@given(
    password=st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1)
)
def test_every_password_can_be_written_and_is_not_shown(password):
    written = "".join(f"%{byte:02X}" for byte in password.encode())
    url = parse_url(f"postgresql://u:{written}@h:1/d?password={written}")
    assert (url.password, url.host) == (password, "h")
    assert displayed(url) == "postgresql://u:***@h:1/d"


@pytest.mark.parametrize("content", [b"", b"\n", b"a\nb", b"\xff"])
def test_a_file_that_holds_no_url_is_refused(content, tmp_path):
    path = tmp_path / "url"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="nothing else"):
        url_in(path)


PLAYS_ONCE = ("--spsa", "--once", "-c", "1")


@pytest.fixture
def project(project):
    (project / "right").write_text(f"sqlite:///{project}/spsa.db\n")
    return project


@pytest.mark.slow
def test_the_url_may_come_from_a_file(project):
    wrong = f"postgresql://u:{SECRET}@127.0.0.1:1/d"
    done = call(master("db", "upgrade"), project, DATABASE_URL_FILE="right")
    assert done.returncode == 0, done.stderr
    assert (project / "spsa.db").exists()
    flags = (*PLAYS_ONCE, "--database-url-file", "right")
    assert call(worker(*flags), project, DATABASE_URL=wrong).returncode == 3
    for command in (master("doctor"), worker(*PLAYS_ONCE)):
        done = call(command, project, DATABASE_URL_FILE="right")
        assert done.returncode in (0, 3), done.stderr


def test_a_url_and_a_file_of_one_are_too_much(project):
    both = ("--database-url", "sqlite:///x", "--database-url-file", "right")
    done = call(worker(*PLAYS_ONCE, *both), project)
    assert (done.returncode, "not both" in done.stderr) == (2, True)


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
