"""Repositories of git for tests, and a server of them on loopback."""

import base64
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

WHO = {
    f"GIT_{role}_{what}": "test@example.org"
    for role in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}


def git(folder: Path, *words: str) -> str:
    """What git says in this folder, without the settings of the user."""
    environment = {**os.environ, **WHO, "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *words],
        cwd=folder,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


class Repository:
    """A work tree, and the bare repository `name`.git beside it that it is pushed to."""

    def __init__(self, root: Path, name: str = "engine") -> None:
        self.work, self.bare = root / name, root / f"{name}.git"
        git(root, "init", "-q", "-b", "main", name)
        git(root, "init", "-q", "--bare", "-b", "main", f"{name}.git")
        git(self.work, "remote", "add", "origin", str(self.bare))

    @property
    def address(self) -> str:
        return f"file://{self.bare}"

    def commit(self, *refs: str, **texts: str) -> str:
        """Commit these files, `a_rs` being a.rs, and push to main and these tags; the hash."""
        for name, text in texts.items():
            (self.work / name.replace("_", ".")).write_text(text)
        git(self.work, "add", "-A")
        git(self.work, "commit", "-q", "--allow-empty", "-m", "a change")
        for tag in refs:
            git(self.work, "tag", "-f", "-a", tag, "-m", tag)
        git(self.work, "push", "-q", "-f", "--tags", "origin", "main")
        return git(self.work, "rev-parse", "HEAD")


@contextmanager
def served(
    root: Path, password: str | None = None, on_request: Callable[[str], None] = lambda _: None
) -> Iterator[str]:
    """The address of the repositories below `root`, by HTTP and git's own CGI program.

    `password` is what the user `me` needs; `on_request` is called with each request's path.
    """
    wanted = password and f"Basic {base64.b64encode(f'me:{password}'.encode()).decode()}"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            on_request(self.path)
            if wanted and self.headers.get("authorization") != wanted:
                self.send_response(401)
                self.send_header("www-authenticate", 'Basic realm="engines"')
                self.end_headers()
                return
            path, _, query = self.path.partition("?")
            environment = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_PROTOCOL": self.headers.get("git-protocol", ""),
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("content-type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
            }
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            done = subprocess.run(
                ["git", "http-backend"], input=body, env=environment, capture_output=True
            )
            head, _, answer = done.stdout.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().splitlines())
            self.send_response(int(fields.pop("Status", "200").split()[0]))
            for name, value in fields.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
