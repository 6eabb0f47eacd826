"""`compete --spsa` from its command line: the settings of a worker, and its start."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from spsa.output import echo
from spsa.security.keys import TrustKey
from worker.address import database_url, warnings
from worker.batches.loop import WorkerOptions
from worker.batches.service import Service, serve
from worker.logs import set_up
from worker.options import engine_limits
from worker.uci.isolation import hide_memory


def run_worker(given: Mapping[str, Any]) -> int:
    """Play the runs of the database; the exit code. `given` has values by their options' names."""
    set_up(given["log_format"], verbose=given["verbose"])
    hide_memory()
    return serve(service_of(given))


def service_of(given: Mapping[str, Any]) -> Service:
    """The settings of a worker; the URL of the database leaves the environment."""
    options = WorkerOptions(
        **{name: given[name] for name in ("drain", "once", "idle_timeout", "max_batches")}
    )
    return Service(
        database_url=private_url(given["database_url"], given["database_url_file"]),
        concurrency=given["concurrency"],
        name=given["name"],
        lease=given["lease"],
        engines_cache=given["engines_cache"],
        trust_key=None if given["trust_key"] is None else TrustKey.of(given["trust_key"]),
        options=options,
        limits=engine_limits(given),
        log_format=given["log_format"],
    )


def private_url(flag: str | None, file: Path | None) -> str:
    """The URL, removed from the environment, so that no engine inherits it."""
    if flag and file:
        raise click.UsageError("give --database-url or --database-url-file, not both")
    url = database_url(flag, os.environ, file)
    for warning in warnings(url, flag):
        echo(f"warning: {warning}", err=True)
    os.environ.pop("DATABASE_URL", None)
    return url
