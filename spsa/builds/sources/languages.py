"""Which language a source file is written in, by the end of its name."""

from collections.abc import Callable, Mapping

from spsa.builds.sources import c, rust
from spsa.builds.sources.file import SourceFile
from spsa.core.params import SOURCE_SUFFIXES

_PARSERS: Mapping[str, Callable[[str, str], SourceFile]] = {
    suffix: rust.parse if suffix == "rs" else c.parse for suffix in SOURCE_SUFFIXES
}


def parse(text: str, name: str = "the constants file") -> SourceFile:
    """Read a file, called `name` in messages; one whose name tells nothing is taken for Rust."""
    return _PARSERS.get(name.rpartition(".")[2], rust.parse)(text, name)
