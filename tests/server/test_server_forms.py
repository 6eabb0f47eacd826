"""What an operator changes from a page, and who cannot."""

import pytest
from builders import stage
from served import NOBODY, OPERATOR, TOKEN, client_of, people, space

from spsa.errors import DatabaseUnreachable
from spsa.lifecycle import RunStatus
from spsa.server.people import COOKIE

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
    viewer = logged_in(client_of(run, people(TOKEN, OPERATOR)), TOKEN)
    visit(viewer, "a viewer")
    visit(client_of(run), "a server without an operator")
    assert run.run("first").status is RunStatus.RUNNING


def test_another_token_ends_the_session(operator, run):
    cookie = {"Cookie": f"{COOKIE}={operator.cookies[COOKIE]}"}
    for token, code in ((OPERATOR, 200), (OPERATOR + "2", 401)):
        assert client_of(run, people(TOKEN, token)).get("/run", headers=cookie).status_code == code


def test_health_says_whether_the_database_answers(run, visit, monkeypatch):
    client = client_of(run, NOBODY)
    visit(client, "a database that answers")

    def away():
        raise DatabaseUnreachable("10.0.0.1: no answer")

    monkeypatch.setattr(run, "check", away)
    visit(client, "a database that is away")
