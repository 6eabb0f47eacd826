"""The command `compete`: with --spsa a worker, with two engines a plain match.

Chess, HTTP and SQL are imported after the command line has been checked, so that --help and a
mistyped option cost no time.
"""

import logging
import os
import platform
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from spsa import __version__
from spsa.errors import report_defect
from spsa.output import PrintableLines, StderrLines, echo, exit_code, write_any_text
from spsa.uci import system
from spsa.uci.spawning import EngineLimits, working_folders
from worker.machine import usable_cores
from worker.settings import NO_DATABASE, FilePath, Settings, click_options
from worker.update import Restart


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]}, params=click_options(Settings)
)
@click.argument(
    "engines", nargs=-1, type=FilePath(exists=True, dir_okay=False), metavar="[ENGINE1 ENGINE2]"
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, _, asked: _say_version(context) if asked else None,
    help="Show the version and exit.",
)
def compete(engines: tuple[Path, ...], **given: Any) -> int:
    """Play chess engines against each other.

    \b
    compete --server URL -c 8             play the runs of a server, by SPSA_TOKEN
    compete --spsa -c 8                   play the runs of a database
    compete ENGINE1 ENGINE2 --games 100   play a match and measure Elo
    compete --replay 12.3 --pgn out.pgn   play batch 3 of iteration 12 again

    A match is played in pairs of games: the same opening and time, with colours swapped.
    """
    settings = Settings(**given)
    check(engines, settings)
    log_to_stderr(verbose=settings.verbose)
    namespaces = None
    with (
        working_folders() if settings.is_worker else nullcontext() as folders,
        system.orphan_reaper(folders) as worker_id,
    ):
        if not settings.no_sandbox:
            namespaces = system.isolation()
            for loss in system.missing(namespaces):
                echo(f"warning: {platform.system()} has {loss}", err=True)
        limits = settings.engine_limits(isolation=namespaces, worker_id=worker_id, folders=folders)
        return _play(engines, settings, limits)


def _say_version(context: click.Context) -> None:
    """Say it after importing all that plays: a worker tries its new version by this."""
    import worker.batches.service
    import worker.remote  # noqa: F401

    echo(f"compete, version {__version__}")
    context.exit()


def check(engines: tuple[Path, ...], settings: Settings) -> None:
    """Refuse a contradictory command line."""
    cores, slots = usable_cores(), settings.concurrency
    if slots > cores and not settings.force:
        raise click.UsageError(
            f"-c {slots} on {cores} cores makes engines share cores and lose on time; "
            f"give {cores} at most, or add --force"
        )
    if settings.replay and (settings.spsa or settings.server):
        raise click.UsageError("--replay reads the database: give neither --spsa nor --server")
    if len(engines) != (0 if settings.is_worker or settings.replay else 2):
        raise click.UsageError(
            "give two engines for a match; --server, --spsa and --replay take those of a run"
        )


def _play(engines: tuple[Path, ...], settings: Settings, limits: EngineLimits) -> int:
    # Imported late: SQL and chess take longer to load than --help takes to print.
    if settings.is_worker:
        from worker.batches.service import run_worker

        system.hide_memory()
        return run_worker(settings, limits)
    if settings.replay:
        try:
            from worker.replay import replay
        except ModuleNotFoundError:  # a zipapp
            raise click.UsageError(NO_DATABASE) from None
        return replay(settings.replay, settings, limits)
    from worker.match import run_match

    first, second = engines
    return run_match(first, second, settings, limits)


def log_to_stderr(*, verbose: bool) -> None:
    """Send the log of this program to stderr."""
    handler = StderrLines()
    handler.setFormatter(PrintableLines("%(asctime)s %(message)s", "%H:%M:%S"))
    root = logging.getLogger("worker")
    root.handlers = [handler]
    root.setLevel(logging.DEBUG if verbose else logging.INFO)


def main() -> None:
    """Run the command; an error becomes a sentence and an exit code, never a traceback."""
    if not os.environ.get("SPSA_DEBUG"):
        sys.excepthook = report_defect
    write_any_text()
    try:
        code = exit_code("compete", lambda: compete.main(standalone_mode=False))
    except Restart as restart:
        restart.carry_out()
    sys.exit(code)
