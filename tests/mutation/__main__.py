"""`make mutants`: every mutant of the sample, and what became of it.

The verdicts are kept in .tuning/mutants; a run that was interrupted goes on where it stopped, and
begins anew when the product or a test has changed.
"""

import argparse
import os
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from math import inf
from pathlib import Path

import click
import pytest
from hypothesis import Phase, settings

from .judge import Judge
from .targets import Mutant

ROOT = Path(__file__).resolve().parent.parent.parent
TESTS = ROOT / "tests"
FILES = (  # the tests that judge
    "db/test_protocol_model.py",
    "db/test_store_*.py",
    "algorithms/test_tuning.py",
    "core/test_limits.py",
    "history/test_purge*.py",
    "master/test_decide.py",
    "server/test_worker_*.py",
    "worker/test_remote*.py",
    "worker/test_worker_client.py",
    "worker/test_worker_counts.py",
    "worker/test_worker_loop.py",
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
    sys.path[:0] = [str(TESTS / "support"), str(TESTS), str(ROOT)]
    from postgres_server import binaries, running_server

    folder = _folder(options.afresh)
    files = [path for pattern in FILES for path in sorted(TESTS.glob(pattern))]
    found = binaries()
    if found is None:
        click.echo("PostgreSQL's binaries are needed: initdb is not in PATH")
        return 2
    began = time.monotonic()
    with running_server(found) as url:
        os.environ["SPSA_TEST_DATABASE_URL"] = url
        until = began + 60 * options.minutes
        judge = Judge(folder, lambda m: options.only in m.name, click.echo, until)
        arguments = ["-p", "no:cacheprovider", "-p", "no:xdist", "-q", "-s"]
        arguments += ["--continue-on-collection-errors", f"--rootdir={ROOT}"]
        pytest.main([*arguments, *map(str, files)], plugins=[Quietly(), judge])
    return _report(judge, time.monotonic() - began, options.write)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--only", default="", help="mutants whose name has this text")
    parser.add_argument("--minutes", type=float, default=inf, help="begin no mutant after them")
    parser.add_argument("--write", metavar="FILE", help="write the list of all mutants to a file")
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


def _report(judge: Judge, seconds: float, file: str | None) -> int:
    """Say how many of how many survived, file by file, and which; 1 where too many did."""
    reached = [m for m in judge.mutants if m.name in judge.verdicts]
    fates = {m: judge.verdicts[m.name].outcome for m in reached}
    equal = {m: judge.verdicts[m.name].why for m, fate in fates.items() if fate == "equivalent"}
    tried = [m for m, fate in fates.items() if fate in ("killed", "survived")]
    survived = [m for m in tried if fates[m] == "survived"]
    lines = [*_table(tried, survived, equal), ""]
    if left := len(judge.mutants) - len(reached):
        lines.append(f"- {left} mutants of the sample were not tried: the time was over")
    lines += [f"- no database takes it: {_told(m)}" for m in reached if fates[m] == "invalid"]
    lines += [f"- survived: {_told(m)}" for m in survived]
    lines += [f"- equivalent, {why}: {_told(m)}" for m, why in equal.items()]
    click.echo("\n".join(["", *lines, f"{judge.judges} tests judged for {seconds:.0f} s"]))
    if file is not None:
        Path(file).write_text("\n".join([*lines, "", *_every(judge, reached)]) + "\n")
    return int(not tried or len(survived) > SURVIVORS * len(tried))


def _table(tried: list[Mutant], survived: list[Mutant], equal: Collection[Mutant]) -> Iterator[str]:
    yield "| file | mutants | killed | survived | equivalent |"
    yield "|---|---|---|---|---|"
    for file in [*dict.fromkeys(m.file for m in tried), ""]:
        own, left, same = (
            sum(m.file.startswith(file) for m in some) for some in (tried, survived, equal)
        )
        yield f"| {file or 'all'} | {own} | {own - left} | {left} | {same} |"


def _every(judge: Judge, reached: Iterable[Mutant]) -> Iterator[str]:
    yield "| place | defect | what became of it |"
    yield "|---|---|---|"
    for mutant in reached:
        verdict = judge.verdicts[mutant.name]
        by = verdict.by.rpartition("/")[2] or verdict.outcome
        defect = f"`{mutant.before}` → `{mutant.after}`".replace("|", "\\|")
        fate = by.replace("|", "\\|")
        yield f"| {mutant.file}:{mutant.line} {mutant.place} | {defect} | {fate} |"


def _told(mutant: Mutant) -> str:
    return f"`{mutant.file}:{mutant.line}` {mutant.place}: `{mutant.before}` → `{mutant.after}`"


if __name__ == "__main__":
    sys.exit(main())
