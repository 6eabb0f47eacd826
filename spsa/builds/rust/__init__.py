"""Finds the numbers in Rust sources and rewrites them.

Pure: reads and writes no file. It finds constants in the syntax tree and not by patterns, so it
does not mistake comments or strings for constants.
"""

from spsa.builds.rust.literal import Literal
from spsa.builds.rust.lookup import (
    ConstantRefused,
    Element,
    constant,
    element,
    elements,
    path_of,
    written,
)
from spsa.builds.rust.rewriting import RewriteDiffers, render, rewrite, sources_of, unified_patch
from spsa.builds.rust.shape import Group, Opaque, Shape, literals
from spsa.builds.rust.syntax import Comment, Kind, RustConstant, RustFile, parse
from spsa.builds.rust.types import INTEGERS

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
    "RustConstant",
    "RustFile",
    "Shape",
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
