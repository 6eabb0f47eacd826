"""Finds the numbers in sources of Rust, C and C++ and rewrites them.

Pure: reads and writes no file. It finds constants in the syntax tree and not by patterns, so it
does not mistake comments or strings for constants. `rust` and `c` read a language; what is found,
and how it is rewritten, is the same for all.
"""

from spsa.builds.sources.literal import INTEGERS, Literal
from spsa.builds.sources.lookup import (
    ConstantRefused,
    Element,
    constant,
    element,
    elements,
    path_of,
    written,
)
from spsa.builds.sources.rewriting import (
    RewriteDiffers,
    parse,
    render,
    rewrite,
    sources_of,
    unified_patch,
)
from spsa.builds.sources.shape import (
    Comment,
    Group,
    Kind,
    Opaque,
    Shape,
    SourceConstant,
    SourceFile,
    literals,
)

__all__ = [
    "INTEGERS",
    "Comment",
    "ConstantRefused",
    "Element",
    "Group",
    "Kind",
    "Literal",
    "Opaque",
    "RewriteDiffers",
    "Shape",
    "SourceConstant",
    "SourceFile",
    "constant",
    "element",
    "elements",
    "literals",
    "parse",
    "path_of",
    "render",
    "rewrite",
    "sources_of",
    "unified_patch",
    "written",
]
