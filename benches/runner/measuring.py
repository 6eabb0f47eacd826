"""Runs a command and asks the kernel what the command itself used, its children left out."""

import os
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_LOOK = 0.02  # seconds between two looks at the command
_TICKS = os.sysconf("SC_CLK_TCK")
_PEAK = re.compile(r"VmHWM:\s+(\d+) kB")


class ContenderFailed(Exception):
    """A command ended with an error; the message is what it said last."""


@dataclass(frozen=True, slots=True)
class Used:
    """Seconds by the wall, seconds of CPU (user and system), the peak of its memory in MiB."""

    wall: float
    cpu: float
    memory: float


def run(command: Sequence[str], folder: Path) -> Used:
    """Run it in `folder`, where it may leave what it likes, and wait for its end."""
    said = folder / "output"
    began = time.monotonic()
    with said.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    peak = _peak_until_the_end(process.pid)
    used = Used(time.monotonic() - began, _cpu(process.pid), peak)
    if process.wait():
        raise ContenderFailed(f"{command[0]}: {said.read_text(errors='replace')[-400:]}")
    return used


def _peak_until_the_end(pid: int) -> float:
    peak = 0.0
    # It is left a zombie, so that its times can still be read.
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        peak = _peak(pid) or peak
        time.sleep(_LOOK)
    return peak


def _peak(pid: int) -> float:
    found = _PEAK.search(Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def _cpu(pid: int) -> float:
    """User and system time of all its threads; fields 14 and 15 of proc(5)'s stat."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
