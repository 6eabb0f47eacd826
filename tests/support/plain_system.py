"""`python plain_system.py WORDS...`: `compete WORDS` on a system that lacks what Linux has.

What the worker may miss is taken away before it is imported. The standard library keeps what it has
already bound, as it has its own ways on such a system. This is not macOS.
"""

import os
import runpy
import select
import sqlite3  # noqa: F401
import subprocess  # noqa: F401
import sys
import sysconfig
import tempfile  # noqa: F401

# Imported before anything is taken away, because they choose by it what they do.
import click  # noqa: F401

LINUX = {
    os: "SCHED_BATCH pidfd_open sched_getaffinity sched_getscheduler sched_setaffinity "
    "sched_setscheduler setns unshare",
    select: "epoll",
}


def take_away() -> None:
    sysconfig.get_config_vars()  # of this Python, whatever it is told it runs on
    sys.platform = "darwin"
    for owner, names in LINUX.items():
        for name in names.split():
            if hasattr(owner, name):
                delattr(owner, name)
    sys.modules["spsa.uci.linux"] = None  # type: ignore[assignment]


if __name__ == "__main__":
    take_away()
    sys.path[0] = ""
    runpy.run_module("worker", run_name="__main__", alter_sys=True)
