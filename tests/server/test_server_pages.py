"""The pages, the JSON behind them and the metrics, for hostile names too, on both databases."""

import json
import re
from itertools import count
from unittest.mock import Mock
from urllib.parse import quote

import pytest
from builders import new_run, new_validation, stage
from served import HOSTILE, client_of, space
from starlette.testclient import TestClient

from spsa.core.scoring import Tally
from spsa.db.purge_queries import Selection
from spsa.errors import DatabaseUnreachable, NotPermitted, TuningError
from spsa.history.replay import carry_out, plan
from spsa.lifecycle import RunStatus
from spsa.master.session import tuning_of
from spsa.protocol import Failure
from spsa.report.alarms import look
from spsa.report.report import history
from spsa.report.status import STATUS
from spsa.report.table import Column, View, record
from spsa.server.reading import ShortCache
from spsa.server.views import Sorted

PAGES = (
    *("/", "/run", "/parameters", "/parameter?name=margin", "/workers"),
    *("/iterations", "/iteration?number=1", "/events"),
)
ADDRESSES = (
    *("runs", "run", "history", "figures", "figures?name=margin", "parameter?name=margin"),
    *("workers", "iterations", "iteration?number=8", "events"),
)


def html(browser, path):
    answer = browser.get(path)
    assert answer.status_code == 200, answer.text
    return re.sub("(?s)<style>.*?</style>", "", answer.text, count=1)  # its own


@pytest.mark.usefixtures("played")
def test_the_pages_of_a_run_and_what_is_not_there(browser, visit):
    visit(browser, "the pages of a run", hostile=quote(HOSTILE))
    visit(browser, "what is not there is told")
    visit(browser, "without an operator nothing can be changed")
    for one, keys in (("", {"run", "workers"}), ("other", {"run"})):
        assert browser.get("/api/figures", params={"worker": one}).json().keys() <= keys


def test_alarms_are_in_the_title_and_in_the_list_of_runs(store, visit):
    staged = stage(store, space(), 0, planned=3)
    staged.open()
    staged.play()
    theta = staged.now().theta
    staged.apply(delta=dict.fromkeys(theta, 0.0), theta={**theta, "margin": 1000.0})
    store.pause("first", "owner", "lunch")
    visit(client_of(store), "alarms")
    store.stop("first", "owner", "dinner")
    visit(client_of(store), "alarms of a run that is over")


def test_two_runs_are_compared(store, visit, sql):
    stage(store, space(), 8)
    stage(store, space(), 9, name="second")
    visit(client_of(store), "two runs are compared")
    sql("UPDATE spsa_worker SET last_seen_at = '2020-01-01 00:00:00.000'")
    visit(client_of(store), "a worker that is gone is shown where it has played")
    assert "spsa_worker" not in client_of(store).get("/metrics").text


@pytest.mark.usefixtures("played")
def test_what_draws_is_sent_compressed_and_kept_for_good(browser):
    (address,) = re.findall(r'data-plotly="([^"]+)"', html(browser, "/run?run=first"))
    packed = browser.get(address)
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "immutable" in packed.headers["cache-control"]
    plain = browser.get(address, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers and plain.content == packed.content
    assert packed.text.lstrip().startswith("/**")


def test_no_page_and_no_answer_holds_markup_or_secrets_of_others(browser, played):
    for path in PAGES:
        page = html(browser, path)
        for secret in ("<img", "geheim", "hostile-claim", "<style", "style=", "javascript:"):
            assert secret not in page, path
        scripts = ['<script src="/static/pages.js" defer>']
        if "data-figures" in page:
            scripts.append('<script src="/static/figures.js" type="module">')
        assert re.findall(r"<script[^>]*>", page) == scripts
    for address in (*(f"/api/{one}" for one in ADDRESSES), "/metrics"):
        answer = browser.get(address)
        assert answer.status_code == 200
        for secret in ("geheim", "hostile-claim", "claim_id", "secret", "NaN", "Infinity"):
            assert secret not in answer.text, address
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_an_iteration_and_a_worker_tell_of_failures_and_purges(store, visit, sql):
    staged = stage(store, space(), 1, planned=3)
    staged.open()
    claim = staged.claim("fails")
    assert claim is not None
    store.fail(claim, Failure(reason="engine crashed"))
    store.keep_files({"c" * 64: b"source"})
    store.order_build("k" * 64, ("x86-64", "linux"), "c" * 64, {}, max_attempts=2)
    sql(
        "UPDATE spsa_build SET status = 'done', worker_id = (SELECT id FROM spsa_worker),"
        " claim_id = 'c', plus_sha256 = i.plus_sha256, minus_sha256 = i.minus_sha256"
        " FROM spsa_iteration i"
    )
    selection = Selection(iterations=(1,), batches=((2, 1),))
    run, tuning = staged.now(), tuning_of(staged.run)
    carry_out(store, tuning, plan(store, run, tuning, selection), "me", "bad memory")
    visit(client_of(store), "failures and purges")


def test_iterations_are_paged(browser, played, visit, monkeypatch):
    monkeypatch.setattr("spsa.server.pages.PAGE", 3)
    visit(browser, "iterations are paged")


def test_parameters_are_sorted(browser, played):
    def names(query):
        page = html(browser, f"/parameters?{query}")
        return re.findall(r'class="name"><a href="/parameter[^"]*name=([^"]{6})', page)

    for query in ("", "sort=name&order=descending", "sort=nothing", "sort=steps+moved"):
        assert names(query) == ["margin", "%3Cimg"]
    for query in ("sort=name", "sort=steps+moved&order=descending"):
        assert names(query) == ["%3Cimg", "margin"]
    assert html(browser, "/workers?sort=seen").count('<th scope="row"') == 4  # two void games
    assert html(browser, "/workers?sort=scale").count('<th scope="row"') == 4, "unknown ones, too"
    page = html(browser, "/parameters?sort=now")
    assert page.count('aria-sort="ascending"') == 1
    assert "sort=now&amp;order=descending" in page
    assert 'aria-sort="descending"' in html(browser, "/workers?sort=slots&order=descending")


def test_results_are_sorted_by_elo_and_unknown_ones_come_last():
    tallies = [Tally(), Tally(0, 2, 0, (1, 0, 0, 0, 0)), Tally(2, 0, 0, (0, 0, 0, 0, 1))]
    view = View("", (Column("elo", "Elo", lambda one: one),))
    none, worst, best = tallies
    assert Sorted("", "", "Elo", is_descending=True).rows(view, tallies) == [best, worst, none]
    assert Sorted("", "", "Elo", is_descending=False).rows(view, tallies) == [worst, best, none]


def test_a_page_that_did_not_change_is_not_sent_again(store):
    staged = stage(store, space(), 1)
    browser = client_of(store)
    tag = browser.get("/iterations").headers["etag"]
    again = browser.get("/iterations", headers={"If-None-Match": tag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    store.extend("first", "owner", 2)
    staged.open()
    assert browser.get("/iterations", headers={"If-None-Match": tag}).status_code == 200


def test_what_is_read_is_kept_for_some_seconds_or_ten_times_as_long_as_it_took(monkeypatch):
    clock, values, cache = [0.0], count(), ShortCache[int](5.0)
    monkeypatch.setattr("spsa.server.reading.monotonic", lambda: clock[0])

    def got(at, seconds):
        def read():
            clock[0] += seconds
            return next(values)

        clock[0] = at
        return cache.get("key", read)

    asked = ((100, 0), (105, 0), (105.5, 2), (127.5, 0), (128, 0))
    assert [got(*one) for one in asked] == [0, 0, 1, 1, 2]


@pytest.mark.parametrize(
    "error", [DatabaseUnreachable, NotPermitted, TuningError, ZeroDivisionError]
)
def test_a_failure_is_told_without_its_details(error, store, visit, monkeypatch, caplog):
    away = Mock(side_effect=error("postgresql://spsa@10.0.0.1/spsa: no answer"))
    for asked in ("run_overviews", "check", "machine_of_token"):
        monkeypatch.setattr(store, asked, away)
    browser = TestClient(client_of(store).app, "http://localhost", raise_server_exceptions=False)
    visit(browser, f"a failure: {error.__name__}")
    assert caplog.text.count("10.0.0.1") == 3


def test_a_run_that_has_played_nothing(store, visit):
    staged = stage(store, space(), 0)
    browser = client_of(store)
    for path in set(PAGES) - {"/iteration?number=1"}:
        html(browser, path)
    visit(browser, "a run that has played nothing")
    store.open_iteration(staged.master, new_validation(target_games=8))
    visit(client_of(store), "an open match")


def test_a_run_of_matches_alone_has_every_page(store, visit):
    over = {"status": RunStatus.FINISHED, "finished_at": store.clock(), "max_iterations": 0}
    plain = {"theta": {}, "space": {"parameters": [], "constraints": []}}
    store.create_run(new_run(**plain, **over))
    visit(client_of(store), "a run of matches alone")


def test_the_status_is_that_of_the_command(browser, played):
    found = browser.get("/api/run?run=first").json()
    expected = json.loads(json.dumps(record(STATUS, look(played.store, played.now()))))
    for changing in ("games_per_second", "seconds_left", "workers"):
        found.pop(changing), expected.pop(changing)
    assert found == expected


def test_the_history_and_the_figures_are_those_of_the_report(played, monkeypatch):
    monkeypatch.setattr("spsa.master.verdict._FEWEST", 1)
    browser = client_of(played.store)
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


@pytest.mark.usefixtures("played")
def test_metrics_are_of_prometheus_format(browser, visit):
    visit(browser, "metrics")
    kind = "text/plain; version=0.0.4; charset=utf-8"
    assert browser.get("/metrics").headers["content-type"] == kind
