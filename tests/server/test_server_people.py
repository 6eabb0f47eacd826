"""Tokens, the cookies they make, and how guessing them is slowed."""

from unittest.mock import patch

import pytest

from spsa.server.people import MAX_WRONG, SESSION_SECONDS, Role, Token, TokenGuesses


@pytest.mark.parametrize("role", Role)
def test_a_session_ends(role):
    token = Token(role, "t" * 20)
    cookie = token.new_cookie()
    end, mac = cookie.split(".")
    with patch("spsa.server.people.time", lambda: float(end) - 1):
        assert token.has_made(cookie)
    with patch("spsa.server.people.time", lambda: float(end) + 1):
        assert not token.has_made(cookie)
    assert not token.has_made(f"{int(end) + SESSION_SECONDS[role]}.{mac}")
    assert not token.has_made("")


def test_an_address_waits_until_its_wrong_tokens_are_a_minute_old():
    now = [1000.0]
    guesses = TokenGuesses(lambda: now[0])
    for _ in range(MAX_WRONG):
        assert guesses.seconds_to_wait("192.0.2.1") == 0
        guesses.add_wrong("192.0.2.1")
        now[0] += 1.0
    assert guesses.seconds_to_wait("192.0.2.1") == 60 - MAX_WRONG
    assert guesses.seconds_to_wait("192.0.2.2") == 0
    now[0] += 60 - MAX_WRONG
    assert guesses.seconds_to_wait("192.0.2.1") == 0
    guesses.add_wrong("192.0.2.1")
    assert guesses.seconds_to_wait("192.0.2.1") == 1, "the second is not a minute old"


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("testclient", "testclient", True),
    ],
)
def test_a_network_of_ipv6_is_one_client(one, other, is_same):
    guesses = TokenGuesses()
    for _ in range(MAX_WRONG):
        guesses.add_wrong(one)
    assert (guesses.seconds_to_wait(other) > 0) is is_same


def test_the_memory_of_guesses_is_bounded(monkeypatch):
    monkeypatch.setattr("spsa.server.people.MAX_ADDRESSES", 3)
    guesses = TokenGuesses()
    for i in (1, 2, 3, 1, 4, 5):
        for _ in range(MAX_WRONG):
            guesses.add_wrong(f"192.0.2.{i}")
    waiting = [i for i in range(1, 6) if guesses.seconds_to_wait(f"192.0.2.{i}")]
    assert waiting == [1, 4, 5]
