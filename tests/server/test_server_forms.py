"""What an operator changes from a page, and who cannot."""

import re

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


def send(client, **fields):
    answer = client.post("/run?run=first", data=fields, headers=OWN)
    return answer.status_code, answer.text


def status(store):
    return store.run("first").status


def test_an_operator_pauses_and_resumes_a_run(operator, run):
    assert "Resume" not in operator.get("/run").text
    fields = {"change": "pause", "reason": "<b>lunch</b>"}
    answer = operator.post("/run?run=first", data=fields, headers=OWN)
    assert (answer.status_code, answer.headers["location"]) == (303, "/run?run=first")
    page = operator.get("/run").text
    assert status(run) is RunStatus.PAUSED
    assert '<span class="status paused">' in page and ">Pause<" not in page
    assert "&lt;b&gt;lunch" in page
    assert send(operator, change="resume")[0] == 303
    assert status(run) is RunStatus.RUNNING
    events = [(event.kind, event.actor) for event in run.events(run.run("first").id)]
    assert events[-2:] == [("paused", "operator"), ("running", "operator")]


def test_a_stop_is_asked_for_once_more(operator, run):
    code, page = send(operator, change="stop", reason="no use")
    assert code == 200 and "ends the run for good" in page and status(run) is RunStatus.RUNNING
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
    assert send(operator, change="stop", **fields)[0] == 303
    assert status(run) is RunStatus.STOPPED
    (event,) = run.events(run.run("first").id, 1)
    assert (event.actor, event.detail) == ("operator", {"reason": "no use"})
    assert 'name="change"' not in operator.get("/run").text
    code, said = send(operator, change="pause")
    assert code == 409 and "it is stopped" in said


def test_other_forms_are_refused(operator, run):
    for fields, code, said in (
        ({"change": "delete"}, 400, "change is not pause, resume or stop"),
        ({"change": "pause", "reason": "x" * 201}, 400, "at most 200"),
        ({"change": "pause", "reason": "x" * 5000}, 413, "4,096 bytes"),
        ({"change": "resume"}, 409, "cannot become running"),
    ):
        answer = send(operator, **fields)
        assert answer[0] == code and said in answer[1] and "<html" in answer[1]
    assert status(run) is RunStatus.RUNNING


def test_only_an_operator_sees_and_sends_the_form(run):
    who = people(TOKEN, OPERATOR)
    viewer = logged_in(client_of(run, who), TOKEN)
    page = viewer.get("/run").text
    assert 'name="change"' not in page and 'href="/login"' in page
    assert "Token" in viewer.get("/login").text
    code, said = send(viewer, change="pause")
    assert code == 403 and "only an operator" in said
    nobody = client_of(run)
    assert 'href="/login"' not in nobody.get("/run").text
    assert send(nobody, change="pause")[0] == 403
    assert status(run) is RunStatus.RUNNING


def test_another_token_ends_the_session(operator, run):
    cookie = {"Cookie": f"{COOKIE}={operator.cookies[COOKIE]}"}
    for token, code in ((OPERATOR, 200), (OPERATOR + "2", 401)):
        assert client_of(run, people(TOKEN, token)).get("/run", headers=cookie).status_code == code


def test_health_says_whether_the_database_answers(run, monkeypatch):
    client = client_of(run, NOBODY)
    assert client.get("/health").json() == {"status": "ok"}

    def away():
        raise DatabaseUnreachable("10.0.0.1: no answer")

    monkeypatch.setattr(run, "check", away)
    answer = client.get("/health")
    assert answer.status_code == 503 and "10.0.0.1" not in answer.text
