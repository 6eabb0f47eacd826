"""Messages reach real servers; what is dead is given up, and no text has an address."""

import json
import logging
import os
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import StreamRequestHandler, ThreadingTCPServer

import pytest
from console import CONFIG, ROOT, write_project
from engines.faulty import wait_until

from spsa.config import load_config
from spsa.errors import InvalidInput
from spsa.report import notify
from spsa.report.notify import Message, Notifier, NotSent, addresses

TOLD = Message(run="nightly", kind="finished", text="run nightly\nfinished: ½", time="now")


class Webhook(ThreadingHTTPServer):
    """Answers each request with the next of `statuses`, the last one again and again.

    A status of 0 is no answer at all, until the server is closed.
    """

    def __init__(self, *statuses: int) -> None:
        super().__init__(("127.0.0.1", 0), _Post)
        self.statuses, self.got = [*statuses], []
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hooks/s3cret?key=s3cret"

    @property
    def shown(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/..."


class _Post(BaseHTTPRequestHandler):
    server: Webhook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, json.loads(body)))
        status = self.server.statuses[0]
        if len(self.server.statuses) > 1:
            del self.server.statuses[0]
        if not status:
            self.server.closing.wait(60)
            return
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


class MailServer(ThreadingTCPServer):
    """An SMTP server that takes every mail; `mails` are their texts."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Smtp)
        self.mails = []

    @property
    def url(self) -> str:
        return (
            f"mailto://127.0.0.1:{self.server_address[1]}?from=a@example.org&to=s3cret@example.org"
        )


class _Smtp(StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        self._say(220, "here")
        for line in self.rfile:
            word = line.split()[0].upper()
            if word == b"DATA":
                self._say(354, "go on")
                self.server.mails.append(b"".join(iter(self.rfile.readline, b".\r\n")).decode())
            self._say(221 if word == b"QUIT" else 250, "done")
            if word == b"QUIT":
                return

    def _say(self, code: int, text: str) -> None:
        self.wfile.write(f"{code} {text}\r\n".encode())


@contextmanager
def listening(server):
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        if isinstance(server, Webhook):
            server.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


def config(folder, urls=(), command="", **environ):
    listed = ", ".join(f"'{url}'" for url in urls)
    own = f'[notify]\nurls = [{listed}]\ncommand = """{command}"""\n'
    (folder / "config.toml").write_text(f"[build]\nsource_path = 'x'\n{own}")
    return load_config(folder / "config.toml", environ)


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    monkeypatch.setattr(notify, "BACKOFF", (0.05, 0.05))
    monkeypatch.setattr(notify, "SEND_SECONDS", 1.0)


def test_a_webhook_gets_json_once_and_again_while_it_fails(tmp_path, caplog):
    with listening(Webhook(500, 429, 204)) as hook:
        with Notifier(addresses(config(tmp_path, [hook.url])), 60) as notifier:
            notifier.tell(TOLD)
            wait_for(hook, 3)
        (path, told), *again = hook.got
    assert path == "/hooks/s3cret?key=s3cret" and again == 2 * [(path, told)]
    assert told.pop("text") == told.pop("content") == TOLD.text
    assert told == {"run": "nightly", "kind": "finished", "time": "now"}
    assert caplog.text == ""


def wait_for(hook, requests):
    wait_until(lambda: len(hook.got) >= requests)


@pytest.mark.parametrize(
    ("statuses", "requests", "said"),
    [
        ((400,), 1, "it answered with HTTP 400"),
        ((302,), 3, "it answered with HTTP 302"),
        ((300,), 3, "it answered with HTTP 300"),
        ((0,), 3, "Read Timeout"),
    ],
)
def test_what_is_refused_is_logged_without_its_address(statuses, requests, said, tmp_path, caplog):
    caplog.set_level(logging.DEBUG, "spsa")
    with listening(Webhook(*statuses)) as hook:
        with Notifier(addresses(config(tmp_path, [hook.url])), 60) as notifier:
            notifier.tell(TOLD)
            wait_for(hook, requests)
            time.sleep(0.3)
        assert len(hook.got) == requests
    assert f"address 1, {hook.shown} did not get finished: {said}" in caplog.text
    assert "s3cret" not in caplog.text


def test_an_address_that_hangs_delays_neither_the_others_nor_the_end(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(notify, "SEND_SECONDS", 60.0)
    monkeypatch.setattr(notify, "BACKOFF", (60.0,))
    with listening(Webhook(0)) as dead, listening(Webhook(200)) as hook:
        with listening(Webhook(503)) as busy:
            three = addresses(config(tmp_path, [dead.url, hook.url, busy.url]))
            began = time.monotonic()
            with Notifier(three, 0.5) as notifier:
                notifier.tell(TOLD)
                notifier.tell(TOLD)
                wait_for(hook, 2)
                wait_for(busy, 2)
                threads = [one for one in threading.enumerate() if one.name == "notify"]
                assert threads and all(one.daemon for one in threads)
        assert len(hook.got) == 2 and time.monotonic() - began < 20
    assert "2 messages not sent" in caplog.text


def test_a_command_gets_the_text_and_no_secret_and_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setenv("SPSA_NOTIFY_URLS", "https://s3cret")

    def run(command):
        (one,) = addresses(config(tmp_path, command=command))
        try:
            one.send(TOLD)
        except NotSent as error:
            assert error.is_final
            return str(error)
        return ""

    assert run(f"cat > {tmp_path}/got; env >> {tmp_path}/got") == ""
    text, _, environment = (tmp_path / "got").read_text().partition("finished: ½\n")
    assert text == "run nightly\n" and "PATH=" in environment and "s3cret" not in environment
    assert run("printf 'no\\\\033[2Jmail' >&2; exit 3") == r"exit code 3 no\x1b[2Jmail"
    assert run("exit 0") == "", "it reads nothing"
    os.mkfifo(tmp_path / "alive")
    reader = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    assert run(f"sleep 600 > {tmp_path}/alive & sleep 600") == "it was killed after 1 s"
    wait_until(lambda: not _is_held(reader))  # its children are killed too
    os.close(reader)


def _is_held(reader):
    try:
        return os.read(reader, 1) != b""
    except BlockingIOError:
        return True


@pytest.mark.slow
def test_a_mail_arrives_by_apprise(tmp_path):
    if "CI" not in os.environ:
        pytest.importorskip("apprise")
    with listening(MailServer()) as server:
        (one,) = addresses(config(tmp_path, [server.url]))
        one.send(TOLD)
    assert one.shown == "address 1, mailto://..."
    (mail,) = server.mails
    assert "Subject: nightly: finished" in mail and "To: s3cret@example.org" in mail
    with pytest.raises(NotSent, match="apprise could not deliver it"):
        one.send(TOLD)
    with pytest.raises(InvalidInput, match=r"1 of urls \(unheard://...\) is none that apprise"):
        addresses(config(tmp_path, ["unheard://s3cret"]))


@pytest.mark.usefixtures("project")
def test_a_wrong_address_is_refused_by_its_place(transcript, monkeypatch):
    transcript("a wrong address is refused by its place")
    monkeypatch.setattr(notify, "find_spec", lambda _: None)
    transcript("without apprise its addresses are refused")


def test_addresses_come_from_the_environment_first(tmp_path):
    listed, file = ["https://a.example/1"], tmp_path / "secret"
    file.write_text("https://b.example/1\nhttps://c.example/2\n")
    named = config(tmp_path, listed, SPSA_NOTIFY_URLS_FILE=str(file))
    assert [one.shown for one in addresses(named)] == [
        f"address {n}, https://{x}.example/..." for n, x in ((1, "b"), (2, "c"))
    ]
    direct = config(tmp_path, listed, SPSA_NOTIFY_URLS="https://d.example")
    assert [one.shown for one in addresses(direct)] == ["address 1, https://d.example/..."]
    assert "d.example" not in repr(direct)
    with pytest.raises(InvalidInput, match="name a file with an address on each line"):
        config(tmp_path, SPSA_NOTIFY_URLS_FILE=str(tmp_path / "none"))


def test_doctor_sends_a_test_to_each_address(project, transcript):
    transcript("no addresses")
    with listening(Webhook(200)) as hook, listening(Webhook(403)) as closed:
        shown = {"hook_shown": hook.shown, "closed_shown": closed.shown}
        urls = {"hook": hook.url, "closed": closed.url}
        transcript("doctor sends a test to each address", **urls, **shown)
    ((_, told),) = hook.got
    assert told["kind"] == "test" and told["text"].startswith("run small\ntest: ")
    transcript("an address where nothing listens", **urls, **shown)


def test_doctor_says_what_the_tutorial_shows(project, ask, monkeypatch):
    if "CI" not in os.environ:
        pytest.importorskip("apprise")
    config = CONFIG.replace('"small"', '"walks"')
    write_project(project, f'{config}[notify]\ncommand = "cat >> messages"\n')
    with listening(Webhook(200)) as hook, listening(MailServer()) as post:
        monkeypatch.setenv("SPSA_NOTIFY_URLS", f"{hook.url} {post.url}")
        said = ask("doctor", "--notify").out.replace(hook.shown, "https://discord.com/...")
    messages = (project / "messages").read_text()
    (mail,) = post.mails
    assert messages.strip() in hook.got[0][1]["text"] and "Subject: walks: test" in mail
    assert messages.strip() in mail.replace("\r", ""), "with its lines"
    shown = f"$ spsa-master doctor --notify\n{said}$ cat messages\n{messages}```"
    assert shown in (ROOT / "docs/tutorial.md").read_text()
