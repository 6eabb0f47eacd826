"""`make mutants`: every mutant of the sample, and what became of it.

The verdicts are kept in .tuning/mutants; a run that was interrupted goes on where it stopped, and
begins anew when the product or a test has changed.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).resolve().parent.parent.parent
TESTS = ROOT / "tests"
FILES = (
    "test_protocol.py",
    "mutation/stories.py",
    "test_protocol_functions.py",
    "test_worker_client.py",
    "test_limits.py",
    "test_store_counting.py",
    "test_store_machines.py",
    "test_store_mastership.py",
    "test_store_races.py",
    "test_store_reports.py",
    "test_store_runs.py",
    "test_store_scheduling.py",
    "test_store_turns.py",
    "test_store_views.py",
    "test_store_work.py",
    "test_undo.py",
    "test_undo_faults.py",
    "test_tuning.py",
    "test_decide.py",
    "test_grants.py",
    "test_worker_loop.py",
)
SURVIVORS = 0.03


class Quietly:
    """Hypothesis finds the same examples each time, and does not look for smaller ones."""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        settings.register_profile(
            "mutants",
            settings.get_profile("patient"),
            derandomize=True,
            database=None,
            phases=(Phase.explicit, Phase.generate),
        )
        settings.load_profile("mutants")


def main(argv: Sequence[str] | None = None) -> int:
    options = _options(argv)
    os.environ.update(SPSA_TEST_SEED="1", SPSA_TEST_EXAMPLES="5")
    sys.path[:0] = [str(TESTS), str(ROOT)]
    from postgres_server import binaries, running_server

    from .judge import Judge

    folder = _folder(options.afresh)
    files = [TESTS / name for name in FILES if (TESTS / name).exists()]
    found = binaries()
    if found is None:
        click.echo("PostgreSQL's binaries are needed: initdb is not in PATH")
        return 2
    began = time.monotonic()
    with running_server(found) as url:
        os.environ["SPSA_TEST_DATABASE_URL"] = url
        judge = Judge(folder, lambda m: options.only in m.name, lambda line: click.echo(line))
        arguments = ["-p", "no:cacheprovider", "-p", "no:xdist", "-q", "-s"]
        arguments += ["--continue-on-collection-errors", "-m", "not slow", f"--rootdir={ROOT}"]
        pytest.main([*arguments, *map(str, files)], plugins=[Quietly(), judge])
    return _report(judge, time.monotonic() - began)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--only", default="", help="mutants whose name has this text")
    parser.add_argument("--afresh", action="store_true", help="forget what was found before")
    return parser.parse_args(argv)


def _folder(afresh: bool) -> Path:
    """Where verdicts are kept."""
    folder = ROOT / ".tuning" / "mutants"
    folder.mkdir(parents=True, exist_ok=True)
    if afresh:
        for path in folder.iterdir():
            path.unlink()
    return folder


def _report(judge: "Judge", seconds: float) -> int:  # type: ignore[name-defined]  # noqa: F821
    """Say how many of how many survived, file by file, and which; 1 where too many did."""
    verdicts = {m.name: judge.verdicts[m.name] for m in judge.mutants}
    tried = [m for m in judge.mutants if verdicts[m.name].outcome != "invalid"]
    survived = [m for m in tried if verdicts[m.name].outcome == "survived"]
    click.echo(f"\n{'file':38} mutants killed survived")
    for file in dict.fromkeys(m.file for m in tried):
        own = [m for m in tried if m.file == file]
        left = sum(m.file == file for m in survived)
        click.echo(f"{file:38} {len(own):7} {len(own) - left:6} {left:8}")
    click.echo(f"{'all':38} {len(tried):7} {len(tried) - len(survived):6} {len(survived):8}")
    for mutant in judge.mutants:
        if verdicts[mutant.name].outcome == "invalid":
            click.echo(f"not tried, as no database takes it: {mutant.name}")
    for mutant in survived:
        click.echo(f"survived: {mutant.name} ({verdicts[mutant.name].why})")
    click.echo(f"{judge.judges} tests judged for {seconds:.0f} s")
    return int(not tried or len(survived) > SURVIVORS * len(tried))


if __name__ == "__main__":
    sys.exit(main())
