"""Sends a message about alarms: to a command, and by a POST that ntfy, Slack and Discord take.

Every attempt ends within `SECONDS`. A failure is told without the address, which is a password of
these services.
"""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from threading import Thread
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from spsa import __version__
from spsa.config.settings import AlarmsSection, Format
from spsa.report.alarm import Alarm
from spsa.text import printable

SECONDS = 20.0
"""Of one attempt; a command that lasts longer is killed."""

_LENGTH = 1_500  # characters of a message: Discord takes 2,000, ntfy 4,096 bytes
_LINE = 300
_SLACK = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True, slots=True)
class AlarmChanges:
    """The alarms that have begun, and those that are over."""

    begun: Sequence[Alarm] = ()
    over: Sequence[Alarm] = ()

    def __bool__(self) -> bool:
        return bool(self.begun or self.over)


def message(run: str, changes: AlarmChanges) -> str:
    """The run, and a line for each alarm as far as they fit."""
    lines = [
        *(f"alarm: {alarm}" for alarm in changes.begun),
        *(f"over: {alarm.subject}: {alarm.found}" for alarm in changes.over),
    ]
    text = f"run {printable(run, _LINE)}"
    for i, line in enumerate(lines):
        longer = f"{text}\n{printable(line, _LINE)}"
        if len(longer) > _LENGTH:
            return f"{text}\n{len(lines) - i} more: see `spsa-master status`"
        text = longer
    return text


def send(config: AlarmsSection, text: str) -> Iterator[str]:
    """Send a message in every way that is configured; yields what failed, in printable text."""
    if config.command and (failure := _run(config.command, text)):
        yield f"the command of [alarms] failed: {failure}"
    if config.url and (failure := _within(SECONDS, lambda: _post(config, text))):
        yield f"the POST to {urlsplit(config.url).hostname} failed: {failure}"


def _run(command: str, text: str) -> str:
    """Run a shell command with the text as its input; why it failed, empty if it did not."""
    with tempfile.TemporaryFile() as said:
        try:
            with subprocess.Popen(
                ["/bin/sh", "-c", command],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,  # so that its children can be killed too
            ) as process:
                try:
                    process.communicate(f"{text}\n".encode(errors="replace"), timeout=SECONDS)
                finally:
                    _kill_group(process.pid)
        except OSError as error:
            return str(error)
        except subprocess.TimeoutExpired:
            return f"it was killed after {SECONDS:g} s"
        return _failure(process.returncode, said)


def _kill_group(group: int) -> None:
    """End the command with all that it started and that is still running."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _failure(code: int, said: Any) -> str:
    if code == 0:
        return ""
    said.seek(0)
    first = said.read(_LINE).decode(errors="replace").strip()
    return printable(f"exit code {code} {first}".strip(), _LINE)


class _NoRedirect(HTTPRedirectHandler):
    """A redirected POST would become a GET, which these services answer without a message."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _post(config: AlarmsSection, text: str) -> str:
    """POST the text; why it failed, empty if it did not."""
    content, body = _body(config.format, text)
    headers = {"Content-Type": content, "User-Agent": f"spsa-tuner/{__version__}"}
    request = Request(config.url, data=body, headers=headers, method="POST")
    try:
        with build_opener(_NoRedirect).open(request, timeout=SECONDS):
            return ""
    except HTTPError as error:
        return f"status {error.code}"
    except URLError as error:
        return printable(str(error.reason), _LINE)
    except (OSError, HTTPException, ValueError) as error:
        return type(error).__name__  # its text may have the address


def _body(format_: Format, text: str) -> tuple[str, bytes]:
    """The type and the bytes of a message.

    ntfy takes plain text (https://docs.ntfy.sh/publish/). Slack takes `text`, in which &, < and >
    are escaped (https://docs.slack.dev/messaging/formatting-message-text), Discord `content`, and
    mentions of people unless `allowed_mentions` forbids them
    (https://discord.com/developers/docs/resources/webhook#execute-webhook).
    """
    if format_ == "text":
        return "text/plain; charset=utf-8", text.encode(errors="replace")
    value: dict[str, Any] = (
        {"text": text.translate(_SLACK)}
        if format_ == "slack"
        else {"content": text, "allowed_mentions": {"parse": []}}
    )
    return "application/json", json.dumps(value).encode()


def _within(seconds: float, attempt: Callable[[], str]) -> str:
    """The result of an attempt, which is left alone if it lasts longer.

    A timeout of a socket holds for each read only, so a server could answer a byte at a time.
    """
    results: list[str] = []
    thread = Thread(target=lambda: results.append(attempt()), daemon=True)
    thread.start()
    thread.join(seconds)
    return results[0] if results else f"no answer after {seconds:g} s"
