"""Rust: constants, tunable macros, and the numbers of functions, by tree-sitter-rust."""

from spsa.builds.sources.rust.syntax import parse

__all__ = ["parse"]
