"""From values to binaries, without ever changing the author's checkout.

`checkout` finds the files that belong to an engine, `pinned` keeps them as they were when the run
began, `work_copy` makes a private copy, `sources` rewrites the constants in it, `cargo` or
`command` compiles it, `smoke` asks the result whether it is an engine, and `artifact_store` stores
it. `builder` calls them all.
"""
