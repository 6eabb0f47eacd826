"""Builds of a small C++ engine by a declared command: make and a compiler, for real."""

import os
import shutil
from pathlib import Path

import pytest

from spsa.builds.builder import Builder
from spsa.builds.recipe import Recipe, Rendered
from spsa.builds.source import pin
from spsa.builds.sources import rewrite
from spsa.builds.subprocesses import Commands
from spsa.core.params import Location
from spsa.errors import BuildFailed, SourceChanged

pytestmark = pytest.mark.skipif(
    not (shutil.which("make") and shutil.which("c++")), reason="needs make and a C++ compiler"
)

ENGINE = Path(__file__).parents[1] / "fixtures" / "cpp"
HEADER = (ENGINE / "params.h").read_text(encoding="utf-8")
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
QUICK = ("make", "CXXFLAGS=-O0 -std=c++17")


def rendered(**values: int) -> Rendered:
    numbers = {Location.parse(name.replace("__", "::")): v for name, v in values.items()}
    return Rendered({"params.h": rewrite(HEADER, numbers, "params.h")}, dict(values))


class Bench:
    """A checkout of the engine, and builders for it."""

    def __init__(self, root: Path) -> None:
        self.source = Path(shutil.copytree(ENGINE, root / "tern"))
        self.root = root

    def builder(self, command: tuple[str, ...] = QUICK, binary: str = "tern") -> Builder:
        work = self.root / "work"
        return Builder(
            pin(self.source, work, [self.source / binary], cargo=False),
            Recipe(command=command, binary=binary),
            work,
            self.root / "engines",
            ENVIRONMENT,
        )


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """For tests that leave the checkout as it is."""
    return Bench(tmp_path_factory.mktemp("tern"))


def test_both_sides_are_built_with_their_values_and_kept_by_their_key(shared: Bench) -> None:
    builder = shared.builder()
    plus, minus = builder.build(rendered(FUTILITY_MARGIN=160), rendered(FUTILITY_MARGIN=60))
    assert plus.bench and minus.bench and plus.bench != minus.bench
    assert plus.target == minus.target != ""
    assert sorted(p.name for p in shared.source.iterdir()) == sorted(
        p.name for p in ENGINE.iterdir()
    )
    stamp = plus.path.stat().st_mtime_ns
    assert builder.build_one("plus", rendered(FUTILITY_MARGIN=160)) == plus
    assert plus.path.stat().st_mtime_ns == stamp


@pytest.mark.slow
def test_a_header_that_the_makefile_does_not_know_reaches_the_binary(shared: Bench) -> None:
    # no rule of the Makefile mentions params.h: make alone would keep the objects of the first
    first = shared.builder().build_one("plus", rendered(RazorMargin=40))
    second = shared.builder().build_one("plus", rendered(RazorMargin=900))
    assert first.sha256 != second.sha256
    assert first.bench != second.bench


@pytest.mark.slow
def test_what_an_earlier_make_left_in_the_checkout_is_not_used(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for name in ("main.o", "eval.o", "board.o", "tern"):
        (bench.source / name).write_text("stale")
    engine = bench.builder().build_one("plus", rendered(TEMPO_BONUS=12))
    assert engine.bench
    assert (bench.source / "main.o").read_text() == "stale"


def test_another_command_is_another_key(shared: Bench) -> None:
    values = rendered(TEMPO_BONUS=13)
    keys = {
        shared.builder().build_key(values),
        shared.builder((*QUICK, "-j2")).build_key(values),
        shared.builder().build_key(rendered(TEMPO_BONUS=14)),
    }
    assert len(keys) == 3


@pytest.mark.parametrize(
    ("command", "binary", "said"),
    [
        (("make", "CXXFLAGS=-std=c++98"), "tern", "`make CXXFLAGS=-std=c++98` ended with 2"),
        (("true",), "tern", "ended without making tern"),
        (("no-such-make",), "tern", "`no-such-make` is not found; install it"),
        (("sh", "-c", "echo '#!/bin/sh' > tern; chmod +x tern"), "tern", "`uciok`"),
    ],
)
def test_a_build_that_fails_says_why(
    shared: Bench, command: tuple[str, ...], binary: str, said: str
) -> None:
    with pytest.raises(BuildFailed, match="the plus engine, with TEMPO_BONUS = 12") as failed:
        shared.builder(command, binary).build_one("plus", rendered(TEMPO_BONUS=12))
    assert said in str(failed.value)


def test_many_values_stand_behind_what_went_wrong(shared: Bench) -> None:
    one = rendered(TEMPO_BONUS=12)
    many = Rendered(one.files, {f"value_{i}": 0.1 * i for i in range(1, 6)})
    with pytest.raises(BuildFailed) as failed:
        shared.builder(("no-such-make",)).build_one("minus", many)
    first, *_, last = str(failed.value).splitlines()
    assert first.startswith("the minus engine: `no-such-make` is not found")
    assert last == (
        "Its values: value_1 = 0.1, value_2 = 0.2, value_3 = 0.3, value_4 = 0.4, value_5 = 0.5"
    )


def test_a_pinned_source_that_was_altered_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    builder = bench.builder()
    (pinned,) = (bench.root / "work" / "pinned").glob("*/eval.cpp")
    pinned.write_text("int main() {}")
    with pytest.raises(SourceChanged, match=r"eval\.cpp \(changed\)"):
        builder.build_one("plus", rendered(TEMPO_BONUS=12))


def test_a_build_is_not_told_how_to_open_the_database() -> None:
    secrets = dict.fromkeys(("DATABASE_URL", "DATABASE_URL_FILE", "PGPASSWORD", "PGPASSFILE"), "x")
    assert Commands({"PATH": "/bin", **secrets}).environment == {"PATH": "/bin"}
