"""The words that a worker provides and that an iteration requires, as text of one column."""

from collections.abc import Collection


def provided_text(words: Collection[str]) -> str:
    """What a worker provides, for the column `provides`: in order, each between two spaces."""
    return "".join(f" {word} " for word in sorted(set(words)))


def required_pattern(words: Collection[str]) -> str | None:
    """A pattern that `provides` is like if it has these words, as `% linux % x86-64 %`."""
    return "".join(f"% {word} " for word in sorted(set(words))) + "%" if words else None


def words_of(pattern: str | None) -> tuple[str, ...]:
    """The words of such a text or pattern."""
    return tuple(word for word in (pattern or "").split() if word != "%")
