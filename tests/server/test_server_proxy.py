"""The examples of deploy/proxy, each as the real program in front of a real server."""

import os
import shutil
import ssl
import urllib.error
import urllib.request
from socket import create_server

import pytest
from asking import Store
from builders import stage
from console import ROOT, Running, write_project
from served import OPERATOR, TOKEN, certify, got, serve, space

from spsa.lifecycle import RunStatus
from spsa.server.people import MAX_WRONG

pytestmark = pytest.mark.slow

EXAMPLES = ROOT / "deploy" / "proxy"


def nginx(folder, port, server_port):
    """The example on other ports, with another certificate, and what is around it otherwise."""
    example = (EXAMPLES / "nginx.conf").read_text()
    own = {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "    listen [::]:443 ssl;\n": "",
        "/etc/ssl/spsa.example.org.crt": str(folder / "proxy.crt"),
        "/etc/ssl/private/spsa.example.org.key": str(folder / "proxy.key"),
        "127.0.0.1:8765": f"127.0.0.1:{server_port}",
    }
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{kind}_temp_path {folder}/{kind}; " for kind in kinds)
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log stderr;\nevents {{}}\n"
        f"http {{ access_log off; {paths}\n{replaced(example, own)}}}\n"
    )
    return ["nginx", "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]


def caddy(folder, port, server_port):
    """The example for another site, whose certificate it need not ask for."""
    example = (EXAMPLES / "Caddyfile").read_text()
    own = {
        "spsa.example.org {": f"https://localhost:{port} {{\n\tbind 127.0.0.1\n"
        f"\ttls {folder}/proxy.crt {folder}/proxy.key",
        "127.0.0.1:8765": f"127.0.0.1:{server_port}",
    }
    around = "{\n\tadmin off\n\tauto_https disable_redirects\n}\n"
    (folder / "Caddyfile").write_text(around + replaced(example, own, skipping="#"))
    return ["caddy", "run", "--config", str(folder / "Caddyfile")]


def replaced(text, own, skipping="\0"):
    text = "\n".join(line for line in text.splitlines() if not line.startswith(skipping)) + "\n"
    for old, new in own.items():
        assert old in text
        text = text.replace(old, new)
    return text


PROXIES = {"nginx": nginx, "caddy": caddy}


@pytest.fixture(params=PROXIES)
def proxied(request, tmp_path, sqlite_url):
    """The address of a proxy in front of a server that has one run, and who trusts it."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    write_project(tmp_path)
    with Store(sqlite_url) as store:
        stage(store, space(), 0)
    for name, token in (("token", TOKEN), ("operator", OPERATOR)):
        (tmp_path / name).write_text(token)
    certify(tmp_path, "proxy")
    options = ("--behind-proxy", "--token-file", "token", "--operator-token-file", "operator")
    with create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    _, address = serve(tmp_path, *options)
    line = PROXIES[request.param](tmp_path, port, address.rstrip("/").rpartition(":")[2])
    proxy = Running(line, tmp_path, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    trusting = ssl.create_default_context(cafile=tmp_path / "proxy.crt")
    url = f"https://localhost:{port}/"
    assert "ok" in got(f"{url}health", None, trusting)
    yield url, trusting
    proxy.terminate()  # its own workers hear of that, and not of a kill
    proxy.wait()


def test_a_proxy_passes_on_what_the_server_needs_and_whose_request_it_is(proxied, sqlite_url):
    url, trusting = proxied
    assert "first" in got(f"{url}api/runs", TOKEN, trusting)
    cookies = urllib.request.HTTPCookieProcessor()
    https = urllib.request.HTTPSHandler(context=trusting)
    browser = urllib.request.build_opener(https, cookies)
    own = {"Origin": url.rstrip("/")}

    def send(path, form):
        request = urllib.request.Request(url + path, form.encode(), own)
        with browser.open(request, timeout=60) as answer:
            return str(answer.read().decode())

    assert "first" in send("login", f"token={OPERATOR}")
    (cookie,) = cookies.cookiejar
    assert cookie.secure
    assert "paused" in send("run?run=first", "change=pause")
    with Store(sqlite_url) as store:
        assert store.run("first").status is RunStatus.PAUSED

    def code(i, token):
        said = {"X-Forwarded-For": f"198.51.100.{i}", "Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"{url}api/runs", headers=said)
        try:
            with urllib.request.urlopen(request, timeout=60, context=trusting) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    assert [code(i, "wrong") for i in range(MAX_WRONG)] == [401] * MAX_WRONG
    assert code(99, TOKEN) == 429
