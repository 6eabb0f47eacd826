"""`spsa-master`: every command is a module of its own, loaded only when it is called."""

import logging
import os
import sys
from collections.abc import Sequence

import click

from spsa import __version__
from spsa.cli.lazy import LazyGroup, Table
from spsa.errors import InvalidInput, TuningError, file_failure, report_defect
from spsa.output import PrintableLines, echo, echo_error, echo_usage_error, write_any_text

COMMANDS: Table = {
    "init": ("spsa.cli.init", "Write a config.toml and params.toml for your own engine."),
    "run": ("spsa.cli.run", "Tune: start a run, or go on with the one that was left."),
    "status": ("spsa.cli.status", "How far, how good, who is playing."),
    "watch": ("spsa.cli.status", "The status again and again, until Ctrl-C."),
    "report": ("spsa.cli.report", "All that is known of a run, as one HTML page, JSON or CSV."),
    "events": ("spsa.cli.events", "What was done to a run, by whom and when."),
    "plot": ("spsa.cli.plot", "Draw a run: theta, Elo, results, workers."),
    "dashboard": ("spsa.cli.dashboard", "Show all runs in a browser."),
    "plan": ("spsa.cli.plan", "How long a run takes, and what it will bring, before it is played."),
    "simulate": ("spsa.cli.simulate", "Tune synthetic engines: the papers' figures, and your own."),
    "params": ("spsa.cli.params", "The parameter space and what it does to the source."),
    "validate": ("spsa.cli.validate", "Play the tuned values against those of the start."),
    "workers": ("spsa.cli.workers", "Who has played, and which machines are set aside."),
    "pause": ("spsa.cli.owner", "Hand out no more games of a run."),
    "resume": ("spsa.cli.owner", "Go on with a paused run."),
    "stop": ("spsa.cli.owner", "End a run early; what was applied stays."),
    "extend": ("spsa.cli.owner", "Give a run another number of iterations."),
    "prioritize": ("spsa.cli.owner", "Serve a run before others, or another share of it."),
    "purge": ("spsa.cli.purge", "Strike out results; theta is what it is without them."),
    "replay": ("spsa.cli.replay", "Theta of any past moment."),
    "doctor": ("spsa.cli.doctor", "Check every invariant of the database, and theta by replay."),
    "db": ("spsa.cli.db", "Create or upgrade the tables, or check them."),
    "key": ("spsa.cli.key", "Make the key that signs what workers execute."),
    "grant": ("spsa.cli.grant", "Logins that may do their part and nothing else."),
    "demo": ("spsa.cli.demo", "A real tuning run of the bundled engine, start to result."),
}


@click.group(
    cls=LazyGroup, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, package_name="spsa-tuner")
def cli() -> None:
    """Tunes the parameters of a chess engine by playing games: the master.

    Workers that play are started with `compete --spsa -c 8`, on any box that reaches the database.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script: every failure ends in one sentence and its exit code."""
    if not os.environ.get("SPSA_DEBUG"):
        sys.excepthook = report_defect
    write_any_text()
    handler = logging.StreamHandler()
    handler.setFormatter(PrintableLines())
    logging.basicConfig(handlers=[handler])
    sys.exit(execute(sys.argv[1:] if arguments is None else arguments))


def execute(arguments: Sequence[str]) -> int:
    """The exit code of `spsa-master ARGUMENTS`."""
    try:
        _refuse_other_encodings(arguments)
        result = cli.main(list(arguments), prog_name="spsa-master", standalone_mode=False)
    except TuningError as error:
        return _failed(error)
    except click.exceptions.Abort:
        return 130
    except click.ClickException as error:
        echo_usage_error(error)
        return error.exit_code
    except OSError as error:
        sentence, code = file_failure(error)
        echo(f"spsa-master: {sentence}", err=True)
        return code
    return result if isinstance(result, int) else 0


def _refuse_other_encodings(arguments: Sequence[str]) -> None:
    """A byte that is not UTF-8 arrives as a lone surrogate, which no database or terminal takes."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise click.UsageError(f"the argument {argument!r} is not UTF-8") from None


def _failed(error: TuningError) -> int:
    if isinstance(error, InvalidInput):
        echo(*error.lines, err=True)
        count = len(error.faults)
        echo(f"{count} fault{'s' if count > 1 else ''}; nothing was built or played", err=True)
    else:
        echo_error("spsa-master", error)
    return error.exit_code
