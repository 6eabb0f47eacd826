"""Who may look at the pages, what a proxy is believed, and what a browser may do with pages."""

import pytest
from asking import Store
from builders import new_run
from served import OPERATOR, TOKEN, client_of, people
from starlette.testclient import TestClient

from spsa.server.guard import Proxy
from spsa.server.people import MAX_WRONG

SITE = "http://fleet.example"
LOOPBACK = Proxy.at("127.0.0.0/8", "::1")


@pytest.fixture
def store(sqlite_url):
    with Store(sqlite_url, durable=False) as opened:
        opened.create_run(new_run())
        yield opened


@pytest.fixture
def guarded(store):
    return client_of(store, people(TOKEN), SITE)


def test_every_answer_has_the_security_headers(store):
    for path in ("/", "/nothing", "/api/runs", "/static/pages.js", "/metrics", "/health"):
        policy = client_of(store).get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy
        assert "script-src 'self'; style-src 'self' 'unsafe-inline'; img" in policy
        assert policy.count("unsafe") == 1 and "http" not in policy


@pytest.mark.parametrize("who", [people(), people(operator=OPERATOR)], ids=["open", "operator"])
def test_without_a_token_only_loopback_names_are_answered(who, store, visit):
    visit(client_of(store, who), "only loopback names are answered")


def test_a_cookie_that_has_ended_is_taken_back(store, guarded, visit):
    """Or the browser would send it with every page until it had to wait."""
    visit(client_of(store, people(operator=OPERATOR)), "a cookie that has ended is taken back")
    visit(guarded, "and asked for again by a viewer")


def test_a_viewers_token_is_needed(guarded, visit):
    visit(guarded, "without the token nothing is shown", token=TOKEN, latin="\xe4.1.\xe4")
    visit(guarded, "workers and health need no token of a viewer")


def test_a_browser_logs_in_by_a_form_of_this_site(guarded, visit):
    visit(guarded, "a form of another site is refused", token=TOKEN)
    visit(guarded, "a browser logs in", token=TOKEN, long="x" * 5000, far="x" * 1000)


def test_guessing_is_slowed_for_one_address_alone(store, guarded):
    wrong = {"Authorization": "Bearer guess"}
    for _ in range(MAX_WRONG // 2):
        form = {"data": {"token": "guess"}, "headers": {"Origin": SITE}}
        assert guarded.post("/login", **form).status_code == 401
        assert guarded.get("/api/runs", headers=wrong).status_code == 401
    right = {"Authorization": f"Bearer {TOKEN}"}
    for answer in (
        guarded.get("/api/runs", headers=right),
        guarded.post("/login", data={"token": TOKEN}, headers={"Origin": SITE}),
    ):
        assert answer.status_code == 429 and 0 < int(answer.headers["retry-after"]) <= 60
    assert guarded.get("/").status_code == 401, "who sends no token is asked for one"
    elsewhere = TestClient(guarded.app, SITE, client=("192.0.2.8", 1))
    assert elsewhere.get("/api/runs", headers=right).status_code == 200


def test_only_the_proxy_is_answered(store, visit):
    for address in ("127.0.0.1", "::1", "192.0.2.7"):
        client = client_of(store, people(TOKEN), SITE, proxy=LOOPBACK, address=address)
        visit(client, "another address" if address == "192.0.2.7" else "the proxy", token=TOKEN)


@pytest.mark.parametrize("proxy", [LOOPBACK, None], ids=["by a proxy", "without a proxy"])
def test_the_client_and_the_scheme_are_named(proxy, store):
    client = client_of(store, people(TOKEN), SITE, proxy=proxy, address="127.0.0.1")

    def status(token, said):
        headers = {"Authorization": f"Bearer {token}", "X-Forwarded-For": said}
        return client.get("/api/runs", headers=headers).status_code

    for i in range(MAX_WRONG):  # the client has made up the first
        assert status("no", f"198.51.100.{i}, 203.0.113.9") == 401
    assert status(TOKEN, "203.0.113.9") == 429
    for other in ("198.51.100.1", "203.0.113.9, 203.0.113.10", "no address", ""):
        assert status(TOKEN, other) == (200 if proxy else 429)
    own = {"Origin": "https://fleet.example", "X-Forwarded-Proto": "https"}
    answer = client.post("/login", data={"token": TOKEN}, headers=own)
    assert answer.status_code == (303 if proxy else 403)
    assert ("Secure" in answer.headers.get("set-cookie", "")) is bool(proxy)
