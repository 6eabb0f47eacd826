"""Between the fleet and PostgreSQL is a proxy that cuts, stalls or swallows: nothing is lost.

SPSA_TEST_LONG=1 is three hundred commits of unknown outcome and as many deaths, and partitions of
half a minute under the product's own deadlines; SPSA_TEST_SEED who is cut off when.
"""

import time
from collections.abc import Iterator

import pytest
from fleet import ProcessSettings
from processes import LONG, SEED, assert_undisturbed, entries, of_six, working
from proxy import ConnectionCutter, Proxy

from spsa.db import deadline
from spsa.db.connection import parse_url

UNKNOWN = 300 if LONG else 4
DEATHS = 300 if LONG else 4
PART, OF_COMMITS = 0.01, 0.05
PARTITIONS = [30.0] * 3 + [3.0] * 4 if LONG else [1.0]
SHORTENED = None if LONG else (0.3, 0.6)
ROOM = 20.0
"""Seconds that a call may take beyond its deadlines, because its machine stands still."""


def behind(proxy: Proxy, url: str) -> str:
    return parse_url(url).set(host="127.0.0.1", port=proxy.port).render_as_string(False)


@pytest.fixture
def cutter() -> ConnectionCutter:
    return ConnectionCutter(PART, OF_COMMITS, SEED)


@pytest.fixture
def proxy(postgresql_url: str, request: pytest.FixtureRequest) -> Iterator[Proxy]:
    decide = request.getfixturevalue("cutter") if "cutter" in request.fixturenames else None
    with Proxy(parse_url(postgresql_url).port or 5432, decide) as made:
        yield made


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_answers_that_never_come_change_nothing(postgresql_url, proxy, cutter, tmp_path, figures):
    began = time.monotonic()
    post = ProcessSettings(behind(proxy, postgresql_url), journal=tmp_path)
    with working(postgresql_url, of_six(post)) as works:
        while works.processes.deaths < DEATHS or cutter.commits < UNKNOWN:
            if works.processes.deaths < DEATHS:
                works.kill_somebody(0.2)
            else:  # a commit takes a slow machine as long as the next death would let it
                works.processes.check()
                time.sleep(0.05)
        works.finish()
        games = assert_undisturbed(works)
    written = entries(tmp_path)
    figures(
        cut_before=cutter.cuts["before"],
        cut_after=cutter.cuts["after"],
        unknown_commits=cutter.commits,
        calls_without_answer=sum(entry.outcome == "DatabaseUnreachable" for entry in written),
        calls=len(written),
        kills=works.processes.deaths,
        games=games,
        seconds=time.monotonic() - began,
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", ["stall", "swallow"])
def test_a_silent_partition_holds_nobody_past_the_deadline(
    postgresql_url, proxy, tmp_path, figures, way
):
    """Half of the fleet and one of its masters are behind it; what stalls arrives after all."""
    began = time.monotonic()
    cut_off = ProcessSettings(behind(proxy, postgresql_url), journal=tmp_path, deadlines=SHORTENED)
    there = ProcessSettings(postgresql_url, journal=tmp_path, deadlines=SHORTENED)
    kinds = [*of_six(cut_off)[2:5], *of_six(there)[2:4], of_six(there)[5]]
    with working(postgresql_url, kinds) as works:
        works.await_everybody(tmp_path, since=began)
        for seconds in PARTITIONS:
            (proxy.stall if way == "stall" else proxy.swallow)()
            silent = time.monotonic()
            time.sleep(seconds)
            if seconds == max(PARTITIONS):  # longer than any deadline: all who are cut off give up
                works.await_refusals(tmp_path, silent, processes=3)
            proxy.end_silence()
            works.await_everybody(tmp_path, since=time.monotonic())
        works.finish()
        games = assert_undisturbed(works)
    written = entries(tmp_path)
    longest = max(entry.seconds for entry in written)
    given_up = sum(entry.outcome == "DatabaseUnreachable" for entry in written)
    assert given_up > 0
    limit = sum(SHORTENED or (deadline.CONNECT_SECONDS, deadline.RESPONSE_SECONDS))
    assert longest < 2 * limit + ROOM
    figures(
        partitions=len(PARTITIONS),
        silent_seconds=sum(PARTITIONS),
        longest_call=longest,
        given_up=given_up,
        games=games,
        seconds=time.monotonic() - began,
    )
