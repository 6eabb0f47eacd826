"""Tokens, the cookies they make, how guessing is slowed, and what an operator changes."""

from unittest.mock import patch

import pytest
from builders import stage
from served import OPERATOR, TOKEN, client_of, people, space

from spsa.lifecycle import RunStatus
from spsa.server.people import COOKIE, MAX_WRONG, SESSION_SECONDS, Role, Token, TokenGuesses


@pytest.mark.parametrize("role", Role)
def test_a_session_ends(role):
    token = Token(role, "t" * 20)
    cookie = token.new_cookie()
    end, mac = cookie.split(".")
    with patch("spsa.server.people.time", lambda: float(end) - 1):
        assert token.has_made(cookie)
    with patch("spsa.server.people.time", lambda: float(end) + 1):
        assert not token.has_made(cookie)
    assert not token.has_made(f"{int(end) + SESSION_SECONDS[role]}.{mac}")
    assert not token.has_made("") and token.text not in f"{token}"


def test_an_address_waits_until_its_wrong_tokens_are_a_minute_old():
    now = [1000.0]
    guesses = TokenGuesses(lambda: now[0])
    for _ in range(MAX_WRONG):
        assert guesses.seconds_to_wait("192.0.2.1") == 0
        guesses.add_wrong("192.0.2.1")
        now[0] += 1.0
    assert guesses.seconds_to_wait("192.0.2.1") == 60 - MAX_WRONG
    assert guesses.seconds_to_wait("192.0.2.2") == 0
    now[0] += 60 - MAX_WRONG
    assert guesses.seconds_to_wait("192.0.2.1") == 0
    guesses.add_wrong("192.0.2.1")
    assert guesses.seconds_to_wait("192.0.2.1") == 1, "the second is not a minute old"


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("testclient", "testclient", True),
    ],
)
def test_a_network_of_ipv6_is_one_client_and_the_memory_is_bounded(
    one, other, is_same, monkeypatch
):
    monkeypatch.setattr("spsa.server.people.MAX_ADDRESSES", 3)
    guesses = TokenGuesses()
    for address in (one, *(f"198.51.100.{i}" for i in (2, 3, 1, 4, 5)), one):
        for _ in range(MAX_WRONG):
            guesses.add_wrong(address)
    assert [i for i in range(1, 6) if guesses.seconds_to_wait(f"198.51.100.{i}")] == [4, 5]
    assert (guesses.seconds_to_wait(other) > 0) is is_same


OWN = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def run(store):
    stage(store, space(), 0)
    return store


@pytest.fixture
def operator(run):
    with client_of(run, people(TOKEN, OPERATOR)) as client:
        yield logged_in(client, OPERATOR)


def logged_in(client, token):
    assert client.post("/login", data={"token": token}, headers=OWN).status_code == 303
    return client


def test_an_operator_changes_a_run_and_is_asked_before_a_stop(operator, run, visit):
    visit(operator, "an operator pauses and resumes a run")
    events = [(event.kind, event.actor) for event in run.events(run.run("first").id)]
    assert events[-2:] == [("paused", "operator"), ("running", "operator")]
    visit(operator, "other forms are refused", long="x" * 201, longer="x" * 5000)
    visit(operator, "a stop is asked for")
    assert run.run("first").status is RunStatus.RUNNING
    visit(operator, "and is carried out")
    (event,) = run.events(run.run("first").id, 1)
    assert (event.actor, event.detail) == ("operator", {"reason": "no use"})


def test_only_an_operator_sees_and_sends_the_form(run, visit):
    visit(logged_in(client_of(run, people(TOKEN, OPERATOR)), TOKEN), "a viewer")
    visit(client_of(run), "a server without an operator")
    assert run.run("first").status is RunStatus.RUNNING


def test_another_token_ends_the_session(operator, run):
    cookie = {"Cookie": f"{COOKIE}={operator.cookies[COOKIE]}"}
    for token, code in ((OPERATOR, 200), (OPERATOR + "2", 401)):
        assert client_of(run, people(TOKEN, token)).get("/run", headers=cookie).status_code == code
