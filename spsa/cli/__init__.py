"""`spsa-master`: every command is a module of its own, loaded only when it is called."""

import importlib
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence

import click

from spsa import __version__
from spsa.errors import report_defect
from spsa.output import PrintableLines, StderrLines, exit_code, write_any_text
from spsa.text import closest

COMMANDS: Mapping[str, tuple[str, str]] = {
    "init": ("spsa.cli.init", "Write a config.toml and params.toml for your own engine."),
    "probe": ("spsa.cli.probe", "Search with each parameter changed: which ones do nothing?"),
    "run": ("spsa.cli.run", "Tune: start a run, continue one, or begin where another one was."),
    "status": ("spsa.cli.status", "Show a run: progress, parameters, workers, events, void games."),
    "report": ("spsa.cli.report", "Write a report of a run: one HTML page, JSON or CSV."),
    "serve": ("spsa.cli.serve", "Serve the pages of all runs, for browsers."),
    "plan": ("spsa.cli.plan", "Predict the length and the gain of a run."),
    "params": (
        "spsa.cli.params",
        "Show the parameters and the patch they make; import or export them.",
    ),
    "validate": ("spsa.cli.validate", "Play a match of the tuned values against the start."),
    "workers": ("spsa.cli.workers", "List workers; set machines aside and release them."),
    "pause": ("spsa.cli.run_control", "Pause a run: workers get no more games of it."),
    "resume": ("spsa.cli.run_control", "Continue a paused run."),
    "stop": ("spsa.cli.run_control", "End a run early; applied results stay."),
    "set": ("spsa.cli.run_control", "Change the length, priority or share of a run."),
    "purge": ("spsa.cli.purge", "Remove results and recompute theta without them."),
    "replay": ("spsa.cli.replay", "Show theta after any result."),
    "doctor": ("spsa.cli.db", "Check all invariants of the database, and theta by replay."),
    "db": ("spsa.cli.db", "Create, upgrade or back up the tables."),
    "demo": ("spsa.cli.demo", "Tune the bundled engine in a few minutes, start to result."),
}
"""A command's name -> the module that has it, as an attribute of that name, and its summary."""


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(COMMANDS[cmd_name][0]), cmd_name)
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and (close := closest(args[0], COMMANDS)):
            ctx.fail(f"No such command {args[0]!r}: did you mean {close!r}?")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, package_name="spsa-tuner")
def cli() -> None:
    """Tune the parameters of a chess engine by playing games: the commands of the master.

    `compete --spsa -c 8` starts a worker, on any machine that reaches the database.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script: every failure ends in one sentence and its exit code."""
    if not os.environ.get("SPSA_DEBUG"):
        sys.excepthook = report_defect
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started ends, too
    write_any_text()
    handler = StderrLines()
    handler.setFormatter(PrintableLines())
    logging.basicConfig(handlers=[handler])
    sys.exit(execute(sys.argv[1:] if arguments is None else arguments))


def execute(arguments: Sequence[str]) -> int:
    """The exit code of `spsa-master ARGUMENTS`."""

    def command() -> object:
        _refuse_other_encodings(arguments)
        return cli.main(list(arguments), prog_name="spsa-master", standalone_mode=False)

    return exit_code("spsa-master", command)


def _refuse_other_encodings(arguments: Sequence[str]) -> None:
    """A byte that is not UTF-8 arrives as a lone surrogate, which no database or terminal takes."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise click.UsageError(f"the argument {argument!r} is not UTF-8") from None
