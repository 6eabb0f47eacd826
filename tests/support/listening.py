"""Servers that get messages, on loopback: HTTP and SMTP, each answering as a test wants."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseServer, StreamRequestHandler, ThreadingTCPServer
from typing import Any, TypeVar

Server = TypeVar("Server", bound=BaseServer)


class Webhook(ThreadingHTTPServer):
    """Answers each request with the next of `statuses`, the last one again and again.

    A status of 0 is no answer at all, until the server is closed.
    """

    def __init__(self, *statuses: int) -> None:
        super().__init__(("127.0.0.1", 0), _Post)
        self.statuses, self.got = [*statuses], list[tuple[str, dict[str, Any]]]()
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
        self.mails: list[str] = []

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
def listening(server: Server) -> Iterator[Server]:
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
