"""Finds the numbers in sources of Rust, C and C++ and rewrites them.

Pure: reads and writes no file. It finds constants in the syntax tree and not by patterns, so it
does not mistake comments or strings for constants. `rust` and `c` say what is special to a
language; what is found, and how it is rewritten, is the same for all.
"""
