"""C and C++: constants, `#define`, enumerators and tables, by tree-sitter-c and tree-sitter-cpp."""

from spsa.builds.sources.c.syntax import parse

__all__ = ["parse"]
