"""The pages: what stands on them, for hostile names too, on both databases."""

import re
from html import escape
from urllib.parse import urlencode

import pytest
from builders import new_run, stage
from served import HOSTILE, client_of, space
from starlette.testclient import TestClient

from spsa.core.scoring import Tally
from spsa.db.purge_queries import Selection
from spsa.errors import DatabaseUnreachable
from spsa.history.replay import carry_out, plan
from spsa.lifecycle import RunStatus
from spsa.master.session import tuning_of
from spsa.protocol import Failure
from spsa.report.status import status
from spsa.report.table import Column, View, elo_text, number
from spsa.server.views import Sorted

PAGES = (
    "/",
    "/run",
    "/parameters",
    "/parameter?name=margin",
    "/workers",
    "/iterations",
    "/iteration?number=1",
    "/events",
)


def html(browser, path):
    answer = browser.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


def cells(page, heading):
    """The value of one of the facts of a page."""
    found = re.search(rf"<dt>(?:<abbr[^>]*>)?{heading}(?:</abbr>)?</dt><dd>(.*?)</dd>", page)
    assert found is not None, heading
    return found[1]


def test_the_overview_begins_with_the_answer_of_status(browser, played):
    page = html(browser, "/run?run=first")
    now = status(played.store, played.now())
    (match,) = now.validations
    answer, rest = page.split('id="alarms"', 1)
    assert f'<p class="measured" id="measured">{elo_text(match.tally)} Elo</p>' in answer
    assert "over the start (95%), by 40 games of " in answer and "6 of 10 iterations" in answer
    for told in ("no alarms", 'class="advice go-on">go on<', "left: ", "games an hour"):
        assert told in answer
    for name in ("elo", "parameters"):
        assert f'data-figure="{name}"><p class="quiet">The figure is drawn by a script' in rest
    for line in ("params diff", "validate", "params export --format openbench"):
        assert f">spsa-master {line} --run first</pre>" in rest


def test_alarms_are_in_the_title_and_in_the_list_of_runs(store):
    staged = stage(store, space(), 0, planned=3)
    staged.open()
    staged.play()
    theta = staged.now().theta
    staged.apply(delta=dict.fromkeys(theta, 0.0), theta={**theta, "margin": 1000.0})
    store.pause("first", "owner", "lunch")
    browser = client_of(store)
    page = html(browser, "/run")
    assert "<title>(2) Run first - spsa-master</title>" in page
    assert "<strong>first</strong>: it is paused: lunch" in page
    assert '<a href="/parameter?run=first&amp;name=margin">margin</a>: theta is 1000, at' in page
    assert 'class="advice look">look<' in page and "left: " not in page
    assert '<span class="status stopped">2</span>' in html(browser, "/")
    alarm, _ = browser.get("/api/run").json()["alarms"]
    assert (alarm["kind"], alarm["found"]) == ("paused", "it is paused: lunch")


def test_two_runs_are_compared(store):
    stage(store, space(), 7)
    stage(store, space(), 8, name="second")
    browser = client_of(store)
    assert "<option>first</option>" in html(browser, "/run?run=second")
    page = html(browser, "/compare?run=first&with=second")
    first, second = (store.run(name).theta["margin"] for name in ("first", "second"))
    for value in (first, second, round((second - first) / 20, 2)):
        assert f'<td class="number">{number(value)}</td>' in page
    assert 'href="/run?run=second"' in page and "7 of 7 iterations" in page
    drawn = browser.get("/api/figures?run=first&with=second").json()["compared"]["data"]
    assert [trace["name"] for trace in drawn] == ["first, estimate", "second, estimate"]


def test_what_draws_is_sent_compressed_and_kept_for_good(browser):
    (address,) = re.findall(r'data-plotly="([^"]+)"', html(browser, "/run?run=first"))
    packed = browser.get(address)
    assert packed.headers["content-encoding"] == "gzip"
    assert "immutable" in packed.headers["cache-control"]
    plain = browser.get(address, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers and plain.content == packed.content
    assert packed.text.lstrip().startswith("/**")


@pytest.mark.parametrize("path", PAGES)
def test_no_page_holds_markup_or_secrets_of_others(path, browser, played):
    page = html(browser, path)
    for secret in ("<img", "geheim", "hostile-claim", "<style", "style=", "javascript:"):
        assert secret not in page
    scripts = ['<script src="/static/pages.js" defer>']
    if "data-figures" in page:
        scripts.append('<script src="/static/figures.js" type="module">')
    assert re.findall(r"<script[^>]*>", page) == scripts


def test_hostile_names_are_shown_as_text(browser, played):
    shown = "&lt;img src=x onerror=alert(1)&gt;&amp;&#34;&#39;{{7*7}}"
    for path in ("/parameters", "/workers", "/events", "/iteration?number=8"):
        assert shown in html(browser, path), path
    page = html(browser, "/parameters")
    address = re.search(r'href="(/parameter\?run=first&amp;name=%3Cimg[^"]+)"', page)
    assert address is not None
    assert f"<h1>Parameter {shown}</h1>" in html(browser, address[1].replace("&amp;", "&"))
    assert "postgresql://spsa:***@db/x is slow" in html(browser, "/events")


def test_an_iteration_has_its_batches(browser, played):
    found = browser.get("/api/iteration?number=8").json()
    assert found["status"] == "in_progress" and found["games_played"] == 4
    first, second = found["batches"]
    assert (first["worker"], first["status"], first["voids"]) == (HOSTILE, "done", {HOSTILE: 2})
    assert (second["worker"], second["status"]) == (None, "ready")
    assert first["first_pair"] == 6 * 4 + 20 and first["plus_time_losses"] == 1
    page = html(browser, "/iteration?number=8")
    rows = re.findall(r'class="name">(\d+)</th>\s*<td class="word"><span[^>]*>(\w+)<', page)
    assert rows == [("0", "done"), ("1", "ready")]
    assert '<td class="text">2: 2 &lt;img' in page  # the reason of its void games
    assert "<code>compete --replay first/8.0</code>" in page
    assert "Purged results" not in page


def test_an_iteration_tells_of_failures_and_purges(store):
    staged = stage(store, space(), 1, planned=3)
    staged.open()
    claim = staged.claim("fails")
    assert claim is not None
    store.fail(claim, Failure(reason="engine crashed"))
    selection = Selection(iterations=(1,), batches=((2, 1),))
    run, tuning = staged.now(), tuning_of(staged.run)
    carry_out(store, tuning, plan(store, run, tuning, selection), "me", "bad memory")
    browser = client_of(store)
    assert "engine crashed" in html(browser, "/iteration?number=2")
    page = html(browser, "/iteration?number=1")
    assert "Purged results" in page and '<td class="word">no</td>' in page
    assert [one["seq"] for one in browser.get("/api/iteration?number=1").json()["purged"]] == [0, 1]
    assert "number 1; bad memory; games " in html(browser, "/events")
    assert "of iterations 1; of batches 2.1</td>" in html(browser, "/events")


def test_iterations_are_paged(browser, played, monkeypatch):
    monkeypatch.setattr("spsa.server.pages.PAGE", 3)
    for path, numbers in (("/iterations", [8, 7, 6]), ("/iterations?before=6", [5, 4, 3])):
        assert [int(n) for n in re.findall(r'number=(\d+)"', html(browser, path))] == numbers
        api = browser.get(f"/api{path}").json()["iterations"]
        assert [one["iteration_number"] for one in api] == numbers
    assert "/iterations?run=first&amp;before=6" in html(browser, "/iterations")
    monkeypatch.undo()
    assert "Older" not in html(browser, "/iterations")
    assert "There are none before 1." in html(browser, "/iterations?before=1")


def test_parameters_are_sorted(browser, played):
    def names(query):
        page = html(browser, f"/parameters?{query}")
        return re.findall(r'class="name"><a href="/parameter[^"]*name=([^"]{6})', page)

    for query in ("", "sort=name&order=descending", "sort=nothing"):
        assert names(query) == ["margin", "%3Cimg"]
    for query in ("sort=name", "sort=steps+moved"):
        assert names(query) == ["%3Cimg", "margin"]
    assert html(browser, "/workers?sort=seen").count('<th scope="row"') == 2
    assert html(browser, "/workers?sort=scale").count('<th scope="row"') == 2, "unknown ones, too"
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
    assert again.status_code == 304 and again.content == b""
    store.extend("first", "owner", 2)
    staged.open()
    assert browser.get("/iterations", headers={"If-None-Match": tag}).status_code == 200


def test_a_worker_has_a_page_with_what_it_plays_and_spoils(browser, played):
    ((name, host),) = ((one.name, one.host) for one in played.store.workers() if one.host == "evil")
    address = f"/worker?{urlencode({'name': name})}"
    assert escape(address) in html(browser, "/workers").replace("run=first&amp;", "")
    page = html(browser, address)
    assert cells(page, "machine") == host and cells(page, "void") == "2"
    assert 'data-figure="workers"' in page
    for one, keys in (("", {"run", "workers"}), ("other", {"run"})):
        assert browser.get("/api/figures", params={"worker": one}).json().keys() <= keys


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        ("/run?run=nope", 404, "there is no run named"),
        ("/run?run=a%00b", 400, "run is not a printable text"),
        ("/parameter?name=nope", 404, "has no parameter"),
        ("/parameter", 400, "name is missing"),
        ("/compare?with=none", 404, "there is no run named"),
        ("/worker?name=nobody", 404, "there is no worker"),
        ("/iteration?number=99", 404, "has no iteration 99"),
        ("/iterations?before=x", 400, "before is not a whole number"),
        ("/events?last=1001", 400, "last is not a whole number from 1 to 1000"),
        ("/nothing", 404, "Not Found"),
    ],
)
def test_what_is_not_there_is_told(path, code, said, browser, played):
    answer = browser.get(path)
    assert answer.status_code == code and said in answer.text
    if not path.startswith(("/compare", "/worker?")):  # pages only
        api = browser.get(f"/api{path}")
        assert api.status_code == code and said in api.json()["error"]


def test_a_defect_is_told_without_its_details(store, monkeypatch, caplog):
    monkeypatch.setattr(store, "run_overviews", lambda: 1 // 0)
    browser = TestClient(client_of(store).app, "http://localhost", raise_server_exceptions=False)
    answer = browser.get("/")
    assert answer.status_code == 500 and "this page has a defect" in answer.text
    assert "ZeroDivision" not in answer.text and "ZeroDivisionError" in caplog.text


def test_a_database_that_is_away_is_asked_again(store, monkeypatch):
    def away():
        raise DatabaseUnreachable("postgresql://spsa@10.0.0.1/spsa: no answer")

    monkeypatch.setattr(store, "run_overviews", away)
    answer = client_of(store).get("/")
    assert answer.status_code == 503 and answer.headers["refresh"] == "5"
    assert "the database does not answer" in answer.text and "10.0.0.1" not in answer.text


def test_without_an_operator_nothing_can_be_changed(browser, played):
    own = {"Origin": "http://localhost"}
    for path in PAGES:
        expected = 400 if path == "/run" else 405  # which names no run
        assert browser.post(path, headers=own).status_code == expected
        assert browser.delete(path, headers=own).status_code == 405
        assert browser.post(path).status_code == 403, "it comes from no page"


def test_a_run_that_has_played_nothing(store):
    stage(store, space(), 0)
    browser = client_of(store)
    for path in PAGES:
        if "number=" not in path:
            html(browser, path)
    page = html(browser, "/run")
    assert "No validation has been played" in page and "there is no result yet" in page
    assert "<code>spsa-master validate</code> plays the tuned values" in page
    assert browser.get("/api/figures").json() == {}


def test_a_run_of_matches_alone_has_every_page(store):
    over = {"status": RunStatus.FINISHED, "finished_at": store.clock(), "max_iterations": 0}
    plain = {"theta": {}, "space": {"parameters": [], "constraints": []}}
    store.create_run(new_run(**plain, **over))
    browser = client_of(store)
    assert "no match has been played" in html(browser, "/run?run=first")
    assert browser.get("/api/figures?run=first").status_code == 200
