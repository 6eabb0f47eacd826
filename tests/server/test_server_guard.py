"""Who may look at the pages, what a proxy is believed, and what a browser may do with pages."""

import pytest
from asking import Store
from builders import new_run
from served import OPERATOR, TOKEN, client_of, people
from starlette.testclient import TestClient

from spsa.server.guard import Proxy
from spsa.server.people import COOKIE, MAX_WRONG

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


def log_in(client, token, **headers):
    sent = {"Origin": str(client.base_url).rstrip("/"), **headers}
    return client.post("/login", data={"token": token}, headers=sent).status_code


def test_every_answer_has_the_security_headers(store):
    for path in ("/", "/nothing", "/api/runs", "/static/pages.js", "/metrics", "/health"):
        policy = client_of(store).get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy
        assert "script-src 'self'; style-src 'self' 'unsafe-inline'; img" in policy
        assert policy.count("unsafe") == 1 and "http" not in policy


@pytest.mark.parametrize("who", [people(), people(operator=OPERATOR)], ids=["open", "operator"])
def test_without_a_token_only_loopback_names_are_answered(who, store):
    for host in ("evil.example", "", "localhost.evil.example", "[::2]"):
        answer = client_of(store, who).get("/", headers={"Host": host})
        assert answer.status_code == 421 and "first" not in answer.text
    for host in ("localhost:8765", "127.0.0.1", "[::1]:8765"):
        assert client_of(store, who).get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/api/runs", "/nothing"])
def test_without_the_token_nothing_is_shown(path, guarded):
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Cookie": f"{COOKIE}={TOKEN}"},
        {"Cookie": f"{COOKIE}=\xe4.1.\xe4".encode("latin-1")},
    ):
        answer = guarded.get(path, headers=headers)
        assert answer.status_code == 401
        assert "first" not in answer.text and TOKEN not in answer.text
        assert "This is not the token" not in answer.text


def test_a_browser_logs_in_and_is_given_a_cookie(guarded):
    own = {"Origin": SITE}
    wrong = guarded.post("/login", data={"token": "wrong"}, headers=own)
    assert wrong.status_code == 401 and "This is not the token" in wrong.text
    assert log_in(guarded, TOKEN + "x" * 5000) == 413
    answer = guarded.post("/login", data={"token": TOKEN}, headers=own)
    assert answer.status_code == 303 and answer.headers["location"] == "/"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and TOKEN not in cookie
    assert "Secure" not in cookie
    assert "first" in guarded.get("/").text


def test_a_form_of_another_site_is_refused(guarded):
    for headers in (
        {},
        {"Origin": "http://evil.example"},
        {"Origin": "https://fleet.example"},
        {"Origin": SITE, "Sec-Fetch-Site": "same-site"},
    ):
        answer = guarded.post("/login", data={"token": TOKEN}, headers=headers)
        assert answer.status_code == 403 and "not sent by a page of this server" in answer.text
        assert "set-cookie" not in answer.headers
    assert log_in(guarded, TOKEN, **{"Sec-Fetch-Site": "same-origin"}) == 303


def test_guessing_is_slowed_for_one_address_alone(store, guarded):
    wrong = {"Authorization": "Bearer guess"}
    for _ in range(MAX_WRONG // 2):
        assert log_in(guarded, "guess") == 401
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


def test_a_cookie_that_has_ended_is_taken_back(store):
    """Or the browser would send it with every page until it had to wait."""
    for who, code in ((people(TOKEN), 401), (people(operator=OPERATOR), 200)):
        answer = client_of(store, who).get("/", headers={"Cookie": f"{COOKIE}=1.2.3"})
        assert answer.status_code == code
        assert answer.headers["set-cookie"] == f"{COOKIE}=; Max-Age=0; Path=/"


def test_workers_and_health_need_no_token_of_a_viewer(guarded):
    refused = guarded.post("/worker/claim")
    assert (refused.status_code, refused.json()["kind"]) == (401, "no_token"), "a machine's token"
    assert guarded.get("/worker/version").json()["sha256"]
    assert guarded.get("/workers").status_code == 401
    assert guarded.get("/health").json() == {"status": "ok"}
    assert "first" not in guarded.get("/health").text


def through(client, path="/api/runs", **headers):
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = client.get(path, headers=names)
    return answer.status_code, answer.text


def test_only_the_proxy_is_answered(store):
    right = {"Authorization": f"Bearer {TOKEN}"}
    for address, code in (("127.0.0.1", 200), ("::1", 200), ("192.0.2.7", 403)):
        client = client_of(store, people(TOKEN), SITE, proxy=LOOPBACK, address=address)
        assert through(client, **right)[0] == code
        assert through(client, "/worker/claim")[0] == (405 if code == 200 else 403)
        assert through(client, "/health")[0] == 200


def test_the_proxy_names_the_client_and_the_scheme(store):
    client = client_of(store, people(TOKEN), SITE, proxy=LOOPBACK, address="127.0.0.1")
    for i in range(MAX_WRONG):
        said = f"198.51.100.{i}, 203.0.113.9"  # the client has made up the first
        assert through(client, Authorization="Bearer no", X_Forwarded_For=said)[0] == 401
    right = f"Bearer {TOKEN}"
    assert through(client, Authorization=right, X_Forwarded_For="203.0.113.9")[0] == 429
    for other in ("198.51.100.1", "203.0.113.9, 203.0.113.10", "no address", ""):
        assert through(client, Authorization=right, X_Forwarded_For=other)[0] == 200
    own = {"Origin": "https://fleet.example", "X-Forwarded-Proto": "https"}
    answer = client.post("/login", data={"token": TOKEN}, headers=own)
    assert answer.status_code == 303 and "Secure" in answer.headers["set-cookie"]


def test_without_a_proxy_nobody_is_believed(store):
    client = client_of(store, people(TOKEN), SITE, address="127.0.0.1")
    for i in range(MAX_WRONG):
        through(client, Authorization="Bearer no", X_Forwarded_For=f"198.51.100.{i}")
    right = f"Bearer {TOKEN}"
    assert through(client, Authorization=right, X_Forwarded_For="203.0.113.1")[0] == 429
    own = {"Origin": "https://fleet.example", "X-Forwarded-Proto": "https"}
    assert client.post("/login", data={"token": TOKEN}, headers=own).status_code == 403
