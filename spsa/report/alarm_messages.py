"""Sends a message about alarms: to a command, and by a POST that ntfy, Slack and Discord take.

A failure is told without the address, which is a password of these services.
"""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError

from spsa import __version__
from spsa.config.settings import AlarmsSection, Format
from spsa.report.alarm import Alarm
from spsa.text import printable

SECONDS = 20.0
"""For a command, which is then killed, and for each wait for a server."""

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
    if config.url and (failure := _post(config, text)):
        yield f"the POST to {urlsplit(config.url).hostname} failed: {failure}"


def _run(command: str, text: str) -> str:
    """Run a shell command with the text as its input; why it failed, empty if it did not."""
    line, pipe = ["/bin/sh", "-c", command], subprocess.PIPE
    with subprocess.Popen(
        line, stdin=pipe, stdout=subprocess.DEVNULL, stderr=pipe, start_new_session=True
    ) as process:
        try:
            _, said = process.communicate(f"{text}\n".encode(errors="replace"), timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with all that it started
            return f"it was killed after {SECONDS:g} s"
    if process.returncode == 0:
        return ""
    told = f"exit code {process.returncode} {said.decode(errors='replace').strip()}"
    return printable(told.strip(), _LINE)


def _post(config: AlarmsSection, text: str) -> str:
    """POST the text; why it failed, empty if it did not.

    A redirected POST would become a GET, which these services answer without a message.
    """
    content, body = _body(config.format, text)
    headers = {"Content-Type": content, "User-Agent": f"spsa-tuner/{__version__}"}
    try:
        with urllib3.PoolManager(timeout=SECONDS, retries=False) as pool:
            answer = pool.request("POST", config.url, body=body, headers=headers, redirect=False)
    except HTTPError as error:
        return type(error).__name__  # its text may have the address
    return "" if answer.status < 300 else f"status {answer.status}"


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
