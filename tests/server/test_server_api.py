"""The JSON behind the pages and the metrics, on both databases."""

import json
import re

import pytest
from served import HOSTILE

from spsa.report.report import history
from spsa.report.status import STATUS, status
from spsa.report.table import record

ADDRESSES = (
    *("runs", "run", "history", "figures", "figures?name=margin", "parameter?name=margin"),
    *("workers", "iterations", "iteration?number=8", "events"),
)
SAMPLE = re.compile(r'([a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)+)\} (\S+)')


def test_the_status_is_that_of_the_command(browser, played):
    found = browser.get("/api/run?run=first").json()
    expected = json.loads(json.dumps(record(STATUS, status(played.store, played.now()))))
    # the worker is silent, so that time changes the alarms too
    for changing in ("games_per_second", "seconds_left", "workers", "alarms"):
        found.pop(changing), expected.pop(changing)
    assert found == expected
    assert found["iterations_applied"] == 6


def test_the_history_and_the_figures_are_those_of_the_report(browser, played, monkeypatch):
    monkeypatch.setattr("spsa.master.verdict._FEWEST", 1)
    found = browser.get("/api/history").json()
    expected = history(played.store, played.now())
    assert tuple(found["k"]) == expected.ks == tuple(range(7))
    assert found["games"] == expected.games(expected.ks)
    assert tuple(found["parameters"][0]["theta"]) == expected.parameters[0].path
    assert found["validations"][0]["tally"]["games"] == 40
    assert expected.gain is not None and tuple(found["gain"]) == expected.gain
    figures = browser.get("/api/figures").json()
    drawn = {trace["name"]: trace["y"] for trace in figures["parameters"]["data"]}
    assert drawn["margin"] == list(expected.parameters[0].in_steps)
    (own,) = browser.get("/api/figures?name=margin").json()["path"]["data"]
    assert own["y"] == list(expected.parameters[0].path)


def test_a_worker_has_its_share_of_the_run(browser, played):
    workers = {one["name"]: one for one in browser.get("/api/workers").json()["workers"]}
    assert workers["machine-1"]["of_run"]["tally"]["games"] == 48
    hostile, against = (workers[HOSTILE][name] for name in ("of_run", "against_others"))
    assert (hostile["void_games"], hostile["time_losses"]) == (2, 1)
    assert (against["machine"], against["void_batches"], against["late_batches"]) == ("evil", 1, 1)
    assert against["findings"] == [] and against["is_suspect"] is False


def test_no_answer_holds_secrets(browser, played):
    for address in (*(f"/api/{one}" for one in ADDRESSES), "/metrics"):
        answer = browser.get(address)
        assert answer.status_code == 200
        for secret in ("geheim", "hostile-claim", "claim_id", "secret", "NaN", "Infinity"):
            assert secret not in answer.text, address
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.usefixtures("played")
def test_metrics_are_of_prometheus_format(browser, visit):
    visit(browser, "metrics")
    answer = browser.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    for line in answer.text.splitlines():
        assert line.startswith("# ") or SAMPLE.fullmatch(line), line
