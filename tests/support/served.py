"""What the tests of the server share: a played run with hostile names, and clients."""

import re
import shlex
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn
from asking import Store
from builders import Stage, new_worker, result_of, stage
from console import Running, Said, master
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from spsa.core.parameter import Location, Parameter
from spsa.core.params import Space
from spsa.protocol import KeptVoid
from spsa.server.app import application, listening
from spsa.server.guard import Proxy
from spsa.server.people import People, Role, Token

NOBODY = People()
TOKEN, OPERATOR = "0123456789abcdef0123", "operator-9876543210"
HOSTILE = "<img src=x onerror=alert(1)>&\"'{{7*7}}"


def space(count: int = 2) -> Space:
    """`margin`, a parameter with a hostile name, and more up to `count`."""
    names = ["margin", HOSTILE, *(f"extra{i}" for i in range(2, count))]
    return Space(
        tuple(
            Parameter(
                name=name,
                value=200.0,
                minimum=0.0,
                maximum=1000.0,
                step=20.0,
                group="search" if i % 2 else "",
                location=Location.parse(f"PLACE_{i}"),
                option=f"Option{i}",
            )
            for i, name in enumerate(names[:count])
        )
    )


def hostile_run(store: Store) -> Stage:
    """The run "first": six results, a validation, an open iteration, and a hostile worker.

    Iteration 7 is the validation; one of the two batches of iteration 8 is played.
    """
    staged = stage(store, space(), 6)
    staged.validate(games=40)
    store.extend(staged.run.name, "owner", 10)
    store.pause(staged.run.name, HOSTILE, "postgresql://spsa:geheim@db/x is slow")
    store.resume(staged.run.name, "owner")
    staged.open()
    worker = store.register_worker(new_worker(HOSTILE, host="evil"))
    claim = store.claim("hostile-claim", worker, 1000.0)
    assert claim is not None
    where = {"white": "minus", "position": "position startpos moves e2e4", "output": HOSTILE}
    kept = tuple(KeptVoid(pair=n, culprit="plus", detail=HOSTILE, **where) for n in range(2))
    told = {"voids": {HOSTILE: 2}, "kept_voids": kept, "plus_time_losses": 1}
    store.report(claim, result_of(claim, **told))
    return staged


def people(viewer: str | None = None, operator: str | None = None) -> People:
    return People(
        viewer=None if viewer is None else Token(Role.VIEWER, viewer),
        operator=None if operator is None else Token(Role.OPERATOR, operator),
    )


def client_of(
    store: Store,
    who: People = NOBODY,
    base_url: str = "http://localhost",
    *,
    proxy: Proxy | None = None,
    address: str = "192.0.2.7",
) -> TestClient:
    """A client, at this address, of a server; it is closed as a context manager."""
    app = application(store, who, proxy)
    return TestClient(app, base_url=base_url, follow_redirects=False, client=(address, 50_000))


SHOWN = r"<(?!input|button|option|form|progress|div class=.plot|img|script|style)[^>]*>"
"""Tags that are left out where a page is shown."""


def requested(client: TestClient, command: str) -> Said:
    """The response to `METHOD PATH Header:value field=value`, as its status and its lines.

    A form is sent as by a page of this server; `Origin:` is a request without that header.
    """
    method, path, *more = shlex.split(command)
    named = [word.split(":", 1) for word in more if re.match(r"[\w-]+:", word)]
    fields = dict(word.split("=", 1) for word in more if re.match(r"\w+=", word))
    own = {"Origin": str(client.base_url).rstrip("/")} if method != "GET" else {}
    headers = {
        name: value.encode("latin-1") for name, value in (own | dict(named)).items() if value
    }
    answer = client.request(method, path, headers=headers, data=fields or None)
    told = (f"{name}: {answer.headers[name]}" for name in TOLD if name in answer.headers)
    is_page = answer.headers.get("content-type", "").startswith("text/html")
    lines = page_lines(answer.text) if is_page else [answer.text]
    return Said(0, "\n".join([" ".join([str(answer.status_code), *told]), *lines]), "")


TOLD = ("location", "set-cookie", "refresh", "retry-after")


def page_lines(page: str) -> list[str]:
    """What stands on a page, a row of a table on a line; `[text](address)`, `{class: text}`."""
    title = re.findall("<title>(.*?)</title>", page)
    text = page.partition("<main")[2].partition(">")[2].replace("<wbr>", "")
    for pattern, shown in (
        (r"(?<=<footer>).*? unless said otherwise\.", ""),
        (r'<a\b[^>]*href="([^"]*)"[^>]*>(.*?)</a>', r"[\2](\1)"),
        (r'<(span|strong) class="(?:status|advice) ?([^"]*)">(.*?)</\1>', r"{\2: \3}"),
        (r"</t[hd]>\s*(?=<t[hd])", " | "),
        (r"</dt>\s*(?=<dd)", ": "),
        (SHOWN, ""),
    ):
        text = re.sub(pattern, shown, text)
    return [*title, *(line.strip() for line in text.splitlines() if line.strip())]


@contextmanager
def serving(
    store: Store,
    who: People = NOBODY,
    around: Callable[[ASGIApp], ASGIApp] = lambda app: app,
    **options: Any,
) -> Iterator[str]:
    """The address of a server that answers over HTTP, with what is `around` it, while this lasts.

    `options` are those of uvicorn.
    """
    listener = listening("127.0.0.1", 0)
    app = around(application(store, who))
    running = uvicorn.Server(uvicorn.Config(app, log_level="critical", **options))
    thread = Thread(target=running.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        scheme = "https" if options else "http"
        yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        running.should_exit = True
        thread.join()
        listener.close()


def serve(project: Path, *options: object) -> tuple[Running, str]:
    """`spsa-master serve` as a process, and the address that it names."""
    process = Running(master("serve", "--port", 0, *options), project)
    process.until(lambda: "\n" in process.out)
    return process, process.out.split()[1]


def got(url: str, token: str | None = None, trusting: ssl.SSLContext | None = None) -> str:
    """The answer to a request, which is repeated until the server listens."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(url, headers=headers)
    for _ in range(100):
        try:
            with urllib.request.urlopen(request, timeout=60, context=trusting) as answer:
                return str(answer.read().decode())
        except (ConnectionError, urllib.error.URLError) as error:
            if not isinstance(getattr(error, "reason", error), ConnectionError):
                raise
            time.sleep(0.1)
    raise AssertionError("it does not answer")


def certify(folder: Path, name: str, names: str = "DNS:localhost,IP:127.0.0.1") -> None:
    """Make `name`.crt, a certificate for this machine that signs itself, and `name`.key."""
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 9"
    own = f"-keyout {name}.key -out {name}.crt -subj /CN=test"
    line = f"{make} {own} -addext subjectAltName={names}".split()
    subprocess.run(line, cwd=folder, check=True, capture_output=True)
