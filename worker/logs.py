"""The worker's log on stderr: one line an event, plain or JSON."""

import json
import logging
from typing import Any

from spsa.output import PrintableLines, StderrLines
from spsa.text import LINE_LENGTH, printable


class JsonLines(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(
            {
                "time": round(record.created, 3),
                "level": record.levelname.lower(),
                "logger": record.name,
                "message": printable(record.getMessage(), LINE_LENGTH),
            }
        )


class PlainLines(PrintableLines):
    """The time and the message; a traceback only with --verbose."""

    def __init__(self, *, detailed: bool) -> None:
        super().__init__("%(asctime)s %(message)s", "%H:%M:%S")
        self._detailed = detailed

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the base class's name
        return super().formatException(ei) if self._detailed else ""


def set_up(log_format: str, *, verbose: bool) -> None:
    """Send the log of this program to stderr."""
    handler = StderrLines()
    handler.setFormatter(JsonLines() if log_format == "json" else PlainLines(detailed=verbose))
    root = logging.getLogger("worker")
    root.handlers = [handler]
    root.setLevel(logging.DEBUG if verbose else logging.INFO)
    root.propagate = False
