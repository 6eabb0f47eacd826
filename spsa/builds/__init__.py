"""From values to binaries, without ever changing the author's checkout.

`tree` finds the files of an engine and keeps them as they were when the run began, `sources`
rewrites the constants in them, `recipe` compiles them in a private copy, `smoke` asks the result
whether it is an engine, and `artifacts` stores it. `builder` calls them all.
"""
