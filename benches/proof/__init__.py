"""The proof on a real engine: detuned, tuned back by several rules, measured against the original.

`python -m benches.proof` plays it. `places` makes the folders of the runs, `playing` moves them to
their ends, `verdict` is what came of it and `markdown` shows that.
"""
