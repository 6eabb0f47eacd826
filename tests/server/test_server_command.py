"""`spsa-master serve`: the process, what it serves, and what it refuses."""

import json
import signal
import ssl
import subprocess
import urllib.error
import urllib.request
from http.client import HTTPException

import pytest
from builders import stage
from console import Running, master
from served import TOKEN, certify, got, serve, space

from spsa.db.migrate import upgrade


@pytest.fixture(scope="module")
def pem(tmp_path_factory):
    """A folder with two certificates for localhost and their keys, and with what is none."""
    folder = tmp_path_factory.mktemp("pem")
    for name in ("one", "two"):
        certify(folder, name)
    line = "openssl pkey -in one.key -aes256 -passout pass:word -out hidden.key"
    subprocess.run(line.split(), cwd=folder, check=True, capture_output=True)
    lines = (folder / "one.crt").read_text().splitlines()
    (folder / "cut.crt").write_text("\n".join([lines[0], *lines[2:], ""]))
    return folder


@pytest.fixture(autouse=True)
def run(project_store):
    """The run "first" in the database of the project."""
    stage(project_store, space(), 1)


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal(ending, project):
    process, address = serve(project)
    assert address.startswith("http://127.0.0.1:")
    assert json.loads(got(f"{address}api/runs"))["runs"][0]["name"] == "first"
    assert "<h1>Run first</h1>" in got(f"{address}run")
    assert "data-live" in got(f"{address}static/pages.js")
    process.send_signal(ending)
    assert process.ended() == (130 if ending == signal.SIGINT else 0), process.log


def test_it_waits_until_the_database_has_tables(project):
    url = f"sqlite:///{project}/later.db"
    process = Running(master("serve", "--port", 0), project, DATABASE_URL=url)
    process.until(lambda: "\n" in process.log)
    assert process.log.startswith("waiting for the database: ") and "later.db" in process.log
    upgrade(url)
    process.until(lambda: "\n" in process.out)
    assert json.loads(got(f"{process.out.split()[1]}api/runs")) == {"runs": []}


def test_other_addresses_need_the_token(project):
    (project / "token").write_text(TOKEN + "\n")
    options = ("--host", "0.0.0.0", "--plain-http", "--token-file", "token")
    process, address = serve(project, *options)
    port = address.rstrip("/").rpartition(":")[2]
    with pytest.raises(urllib.error.HTTPError, match="401"):
        got(f"http://127.0.0.1:{port}/")
    assert "first" in got(f"http://127.0.0.1:{port}/api/runs", TOKEN)
    process.terminate()
    assert process.ended() == 0
    assert process.log == "warning: tokens and results cross the network unencrypted\n"


def test_it_answers_by_tls(project, pem):
    (project / "token").write_text(TOKEN)
    options = ("--host", "0.0.0.0", "--certificate", pem / "one.crt", "--private-key")
    _, address = serve(project, *options, pem / "one.key", "--token-file", "token")
    assert address.startswith("https://0.0.0.0:")
    url = address.replace("0.0.0.0", "localhost")
    trusting = ssl.create_default_context(cafile=pem / "one.crt")
    trusting.maximum_version = ssl.TLSVersion.TLSv1_2
    assert "first" in got(f"{url}api/runs", TOKEN, trusting)
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        got(f"{url}api/runs", TOKEN, ssl.create_default_context(cafile=pem / "two.crt"))
    with pytest.raises((OSError, HTTPException)):
        urllib.request.urlopen(url.replace("https", "http"), timeout=60)


OPEN = ["--host", "0.0.0.0"]
GOOD = ["--token-file", "good"]
REFUSED = [
    (OPEN, "other machines can reach 0.0.0.0: give --certificate FILE and --private-key FILE, or"),
    ([*OPEN, *GOOD], "or --behind-proxy, or --plain-http, which sends tokens unencrypted"),
    ([*OPEN, "--plain-http"], "other machines can reach this server: give --token-file"),
    (["--behind-proxy"], "other machines can reach this server: give --token-file"),
    ([*OPEN, "--certificate", "one.crt", *GOOD], "--private-key FILE together"),
    ([*OPEN, "--plain-http", "--behind-proxy", *GOOD], "--plain-http is for a server without TLS"),
    (["--behind-proxy", "10.0.0.1/8"], "10.0.0.1/8 has host bits set"),
    (["--behind-proxy=proxy.example"], "name addresses or networks, as 10.0.0.2"),
    (["--token-file", "none"], "none: [token] cannot be read: No such file"),
    (["--token-file", "short"], "at least 16 characters"),
    (["--token-file", "latin"], "it is not ASCII"),
    ([*GOOD, "--operator-token-file", "good"], "good: [token] is the viewers' token, too"),
]


def test_what_may_not_be_served_is_refused(project, ask):
    (project / "short").write_text("x" * 15)
    (project / "latin").write_bytes(b"\xe4" * 20)
    (project / "good").write_text(TOKEN)
    for line, said in REFUSED:
        heard = ask("serve", *line)
        assert (heard.code, heard.out) == (2, "")
        assert said in heard.err and TOKEN not in heard.err


def test_an_address_that_is_not_this_machines_is_told(project, ask):
    (project / "good").write_text(TOKEN)
    heard = ask("serve", "--host", "192.0.2.1", "--plain-http", *GOOD)
    assert (heard.code, heard.out) == (1, "") and "192.0.2.1:8765: " in heard.err


def test_a_certificate_that_cannot_be_used_is_refused(pem, ask):
    for certificate, key, said in (
        ("none.crt", "one.key", "no such file"),
        ("cut.crt", "one.key", ""),
        ("one.crt", "two.key", "key values mismatch"),
        ("one.crt", "hidden.key", ""),
    ):
        heard = ask("serve", "--certificate", pem / certificate, "--private-key", pem / key)
        assert (heard.code, heard.out) == (2, "") and "PRIVATE KEY-----" not in heard.err
        assert f"[certificate] cannot be used with {pem / key}: {said}" in heard.err
