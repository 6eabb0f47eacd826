"""`spsa-master serve`: the process, what it serves, and what it refuses."""

import json
import signal
import socket
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


def test_it_waits_until_there_are_tables_and_needs_the_token_at_other_addresses(project):
    url = f"sqlite:///{project}/later.db"
    (project / "token").write_text(TOKEN + "\n")
    options = ("--port", 0, "--host", "0.0.0.0", "--plain-http", "--token-file", "token")
    process = Running(master("serve", *options), project, DATABASE_URL=url)
    process.until(lambda: "waiting for the database: " in process.log)
    assert "later.db" in process.log
    upgrade(url)
    process.until(lambda: "\n" in process.out)
    port = process.out.split()[1].rstrip("/").rpartition(":")[2]
    with pytest.raises(urllib.error.HTTPError, match="401") as refused:
        got(f"http://127.0.0.1:{port}/")
    assert refused.value.headers["Server"] is None
    assert json.loads(got(f"http://127.0.0.1:{port}/api/runs", TOKEN)) == {"runs": []}
    with socket.create_connection(("127.0.0.1", int(port))) as connection:
        connection.sendall(b"no HTTP\r\n\r\n")
        assert b" 400 " in connection.recv(100)
    process.terminate()
    assert process.ended() == 0
    warned = "warning: tokens and results cross the network unencrypted"
    assert {warned} < {*process.log.splitlines()} and process.log.count("\n") == 2


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


def test_what_may_not_be_served_is_refused(project, pem, transcript):
    (project / "short").write_text("x" * 15)
    (project / "latin").write_bytes(b"\xe4" * 20)
    (project / "good").write_text(TOKEN)
    (project / "spaced").write_text("two words " * 9)
    transcript.refused("what may not be served is refused", token=TOKEN)
    with socket.create_server(("127.0.0.1", 0)) as other:
        transcript.refused("a port that is taken", port=other.getsockname()[1])
    transcript.refused("a certificate that cannot be used is refused", pem=pem)
