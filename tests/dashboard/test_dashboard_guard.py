"""Who may look at the dashboard, and what a browser may do with its pages."""

from collections.abc import Iterator

import pytest
from builders import new_run
from dashboards import client_of
from starlette.testclient import TestClient

from spsa.dashboard.guard import is_loopback
from spsa.db.store import Store, open_store

TOKEN = "0123456789abcdef0123"


@pytest.fixture
def store(sqlite_url: str) -> Iterator[Store]:
    with open_store(sqlite_url, durable=False) as opened:
        opened.create_run(new_run())
        yield opened


@pytest.fixture
def guarded(store: Store) -> TestClient:
    return client_of(store, TOKEN, "http://fleet.example")


def test_every_answer_has_the_security_headers(store: Store) -> None:
    for path in ("/", "/nothing", "/api/runs", "/static/dashboard.js", "/metrics"):
        policy = client_of(store).get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy
        assert "unsafe" not in policy and "http" not in policy


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "192.0.2.1", "[::2]"])
def test_without_a_token_only_loopback_names_are_answered(host: str, store: Store) -> None:
    answer = client_of(store).get("/", headers={"Host": host})
    assert answer.status_code == 421 and "first" not in answer.text


@pytest.mark.parametrize("host", ["localhost:8765", "127.0.0.1", "[::1]:8765"])
def test_loopback_names_are_answered(host: str, store: Store) -> None:
    assert client_of(store).get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/run", "/api/runs", "/metrics", "/nothing"])
def test_without_the_token_nothing_is_shown(path: str, guarded: TestClient) -> None:
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Cookie": f"spsa_dashboard={TOKEN}"},
        {"Cookie": "spsa_dashboard=\xe4".encode("latin-1")},
    ):
        answer = guarded.get(path, headers=headers)  # type: ignore[arg-type]
        assert answer.status_code == 401 and "first" not in answer.text
        assert TOKEN not in answer.text


def test_a_program_sends_the_token(guarded: TestClient) -> None:
    answer = guarded.get("/api/runs", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.json()["runs"][0]["name"] == "first"


def test_a_browser_logs_in_and_is_given_a_cookie(guarded: TestClient) -> None:
    assert guarded.post("/login", data={"token": "wrong"}).status_code == 401
    assert guarded.post("/login", data={"token": TOKEN + "x" * 5000}).status_code == 401
    answer = guarded.post("/login", data={"token": TOKEN})
    assert answer.status_code == 303 and answer.headers["location"] == "/"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and TOKEN not in cookie
    assert "first" in guarded.get("/").text


def test_loopback_is_told_from_other_names() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.0.1", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "", "10.0.0.1", "localhost.example")))
