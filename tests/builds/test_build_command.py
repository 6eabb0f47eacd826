"""Builds of a small C++ engine by a declared command: make and a compiler, for real."""

import shutil
from pathlib import Path

import pytest
from checkouts import FIXTURES, Bench

from spsa.builds.builder import Builder
from spsa.builds.recipe import Rendered
from spsa.builds.sources.rewriting import rewrite
from spsa.core.params import Location
from spsa.errors import BuildFailed

pytestmark = pytest.mark.skipif(
    not (shutil.which("make") and shutil.which("c++")), reason="needs make and a C++ compiler"
)

HEADER = (FIXTURES / "cpp" / "params.h").read_text(encoding="utf-8")
QUICK = ("make", "CXXFLAGS=-O0 -std=c++17")


def rendered(**values: int) -> Rendered:
    numbers = {Location.parse(name.replace("__", "::")): v for name, v in values.items()}
    return Rendered({"params.h": rewrite(HEADER, numbers, "params.h")}, dict(values))


def builder(bench: Bench, *command: str) -> Builder:
    return bench.builder(command=command or QUICK, binary="tern")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """For tests that leave the checkout as it is."""
    return Bench(tmp_path_factory.mktemp("tern"), "cpp")


def test_both_sides_are_built_with_their_values_and_kept_by_their_key(shared: Bench) -> None:
    made = builder(shared)
    plus, minus = made.build(rendered(FUTILITY_MARGIN=160), rendered(FUTILITY_MARGIN=60))
    assert plus.bench and minus.bench and plus.bench != minus.bench
    assert plus.target == minus.target != ""
    files = {path.name for path in (FIXTURES / "cpp").iterdir()}
    assert {path.name for path in shared.source.iterdir()} == files
    stamp = plus.path.stat().st_mtime_ns
    assert made.build_one("plus", rendered(FUTILITY_MARGIN=160)) == plus
    assert plus.path.stat().st_mtime_ns == stamp


@pytest.mark.slow
def test_nothing_that_an_earlier_make_left_is_used(tmp_path: Path) -> None:
    # no rule of the Makefile mentions params.h: make alone would keep the objects of the first
    bench = Bench(tmp_path, "cpp")
    for name in ("main.o", "eval.o", "board.o", "tern"):
        bench.write(name, "stale")
    first = builder(bench).build_one("plus", rendered(RazorMargin=40))
    second = builder(bench).build_one("plus", rendered(RazorMargin=900))
    assert first.bench != second.bench
    assert (bench.source / "main.o").read_text() == "stale"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("make", "CXXFLAGS=-std=c++98"), "`make CXXFLAGS=-std=c++98` ended with 2"),
        (("sh", "-c", "echo 'no such header' >&2; exit 3"), "ended with 3\nno such header\nall of"),
        (("sh", "-c", "printf '\\377' >&2; exit 3"), "ended with 3\n\N{REPLACEMENT CHARACTER}"),
        (("true",), "ended without making tern"),
        (("no-such-make",), "`no-such-make` is not found; install it"),
        (("sh", "-c", "echo '#!/bin/sh' > tern; chmod +x tern"), "tern: "),
    ],
)
def test_a_build_that_fails_says_why(shared: Bench, command: tuple[str, ...], said: str) -> None:
    with pytest.raises(BuildFailed, match=r"^the plus engine: ") as failed:
        builder(shared, *command).build_one("plus", rendered(TEMPO_BONUS=12))
    assert said in str(failed.value)
    assert str(failed.value).endswith("\nIts values: TEMPO_BONUS = 12")
