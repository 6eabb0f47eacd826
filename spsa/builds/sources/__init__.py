"""Finds the numbers in sources of Rust, C and C++ and rewrites them.

Pure: reads and writes no file. It finds constants in the syntax tree and not by patterns, so it
does not mistake comments or strings for constants. `rust` and `c` say what is special to a
language; what is found, and how it is rewritten, is the same for all.
"""

from spsa.builds.sources.constant import (
    ConstantRefused,
    Element,
    Kind,
    Opaque,
    SourceConstant,
    SourceFile,
)
from spsa.builds.sources.reading import parse
from spsa.builds.sources.rewriting import (
    RewriteDiffers,
    constant,
    element,
    elements,
    render,
    rewrite,
    sources_of,
    unified_patch,
    written,
)

__all__ = [
    "ConstantRefused",
    "Element",
    "Kind",
    "Opaque",
    "RewriteDiffers",
    "SourceConstant",
    "SourceFile",
    "constant",
    "element",
    "elements",
    "parse",
    "render",
    "rewrite",
    "sources_of",
    "unified_patch",
    "written",
]
