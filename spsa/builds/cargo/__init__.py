"""What it takes to turn a Rust checkout into binaries without ever touching the checkout.

`checkout` knows which files belong to an engine, `pinned` keeps them as they were when the run
began, `work_copy` lays out a private copy, `compiler` runs cargo there, `smoke` tries the result,
`key` names it and `artifact_store` keeps it. `spsa.builds.builder` is the only door.
"""
