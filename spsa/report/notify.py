"""Messages about a run, and the command and addresses of [notify] that get them.

An address is a secret: of a webhook, scheme and host are shown, of any other one the scheme.
"""

import logging
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

import urllib3
from urllib3.exceptions import HTTPError, LocationParseError
from urllib3.util import parse_url

from spsa.builds.commands import Commands
from spsa.config.document import read_document
from spsa.config.settings import Config
from spsa.errors import Fault, InvalidInput, TuningError
from spsa.text import closest, plural, printable, words_of

SEND_SECONDS = 20.0
"""For one attempt; a command is then killed."""

BACKOFF = (2.0, 15.0, 60.0)
"""Seconds between the attempts."""

_WEBHOOK = re.compile("https?://", re.IGNORECASE)
_TRY_AGAIN = (408, 425, 429)
_LAST_WORDS = 300

log = logging.getLogger("spsa.notify")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """`text` has less than 2,000 characters, which every service takes."""

    run: str
    kind: str
    text: str
    time: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))


class NotSent(TuningError):
    """A message did not reach an address, of which this says nothing; `is_final`: nor will it."""

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        self.is_final = is_final
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Address:
    """`shown` is what may be said of it."""

    shown: str
    transport: Callable[[Message], None]

    def send(self, message: Message) -> None:
        """Try once; NotSent says why it failed."""
        try:
            self.transport(message)
        except NotSent:
            raise
        except Exception as error:  # noqa: BLE001 - of a library; its text may have the address
            raise NotSent(" ".join(words_of(type(error).__name__, _LAST_WORDS))) from None


def addresses(config: Config) -> tuple[Address, ...]:
    """The command and the addresses of [notify].

    Raises:
        InvalidInput: with all that is wrong; an address is named by its place in the list.
    """
    command, faults = config.notify.command, []
    told = [Address("command", partial(_run, command))] if command else []
    for n, url in enumerate(config.notify.urls, start=1):
        try:
            made = _webhook(url) if _WEBHOOK.match(url) else _by_apprise(url)
            told.append(replace(made, shown=f"address {n}, {made.shown}"))
        except _WrongAddress as error:
            faults.append((("notify", "urls"), f"address {n} of urls {error}", error.remedy))
    if faults and (source := config.notify_variable):
        raise InvalidInput(
            [
                Fault(file=source, line=None, name="notify", found=found, remedy=remedy)
                for _, found, remedy in faults
            ]
        )
    if faults:
        raise InvalidInput(read_document(config.path).faults(faults))
    return tuple(told)


class _WrongAddress(Exception):
    def __init__(self, found: str, remedy: str = 'write it as "https://host/path"') -> None:
        super().__init__(found)
        self.remedy = remedy


def _webhook(url: str) -> Address:
    with suppress(LocationParseError):
        if (parsed := parse_url(url)).host:
            return Address(f"{parsed.scheme}://{parsed.netloc}/...", partial(_post, url))
    raise _WrongAddress("is no URL")


def _post(url: str, message: Message) -> None:
    """No redirect is followed, because it would tell the message to another host."""
    told = {"text": message.text, "content": message.text}  # for Slack, for Discord
    told |= {"run": message.run, "kind": message.kind, "time": message.time}
    with urllib3.PoolManager(retries=False, timeout=SEND_SECONDS / 2) as pool:
        try:
            status = pool.request("POST", url, json=told).status
        except HTTPError as error:
            if said := getattr(error.__cause__, "strerror", None):
                raise NotSent(said) from None
            raise
    if not 200 <= status < 300:
        is_final = 400 <= status < 500 and status not in _TRY_AGAIN
        raise NotSent(f"it answered with HTTP {status}", is_final=is_final)


def _by_apprise(url: str) -> Address:
    scheme = url.partition("://")[0]
    if not scheme.isalnum() or scheme == url:
        raise _WrongAddress("is no URL")
    near = closest(scheme, ("http", "https"))  # apprise has httpsms://
    perhaps = f'did you mean "{near}://"? Else ' if near else ""
    if find_spec("apprise") is None:
        found = f"({scheme}://...) is no webhook and needs apprise, which is not installed"
        raise _WrongAddress(
            found, f"{perhaps}`pip install 'spsa-tuner[notify]'`, or name a webhook"
        )
    apprise: Any = import_module("apprise")
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)  # what it logs may have the address
    service = apprise.Apprise()
    if not service.add(url):
        remedy = f"{perhaps}https://github.com/caronc/apprise shows how each service is written"
        raise _WrongAddress(f"({scheme}://...) is none that apprise knows", remedy)

    def send(message: Message) -> None:
        title = f"{message.run}: {message.kind}"
        # not HTML, whose lines a mail would join
        if not service.notify(body=message.text, title=title, body_format="text"):
            raise NotSent("apprise could not deliver it")

    return Address(f"{scheme}://...", send)


def _run(command: str, message: Message) -> None:
    """Run a shell command with the text as its input, and no password in its environment."""
    with subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=Commands(os.environ).environment,
    ) as process:
        try:
            text = f"{message.text}\n".encode()
            _, said = process.communicate(text, timeout=SEND_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with all that it started
            raise NotSent(f"it was killed after {SEND_SECONDS:g} s", is_final=True) from None
    if process.returncode != 0:
        told = f"exit code {process.returncode} {said.decode(errors='replace').strip()}"
        raise NotSent(printable(told.strip(), _LAST_WORDS), is_final=True)


class Notifier:
    """Sends messages while the caller goes on.

    Each message has a thread for each address, so one that is dead delays no other. A context
    manager: its end waits at most `leave_seconds` for what is not sent yet.
    """

    def __init__(self, told: Sequence[Address], leave_seconds: float) -> None:
        self._told = told
        self._leave_seconds = leave_seconds
        self._leaving = threading.Event()
        self._threads: list[threading.Thread] = []

    def tell(self, message: Message) -> None:
        for address in self._told:
            both = address, message
            thread = threading.Thread(target=self._deliver, args=both, name="notify", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _deliver(self, address: Address, message: Message) -> None:
        for pause in (*BACKOFF, 0.0):
            try:
                return address.send(message)
            except NotSent as error:
                if error.is_final or not pause or self._leaving.wait(pause):
                    log.warning("%s did not get %s: %s", address.shown, message.kind, error)
                    return None
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving.set()
        end = time.monotonic() + self._leave_seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        if late := sum(thread.is_alive() for thread in self._threads):
            log.warning("%s not sent: [notify] gets no answer", plural(late, "message"))
