"""The proof on a real engine: detuned, tuned back by several rules, measured against the original.

`python -m benches.proof` plays it with the bundled engine, or with any whose tuning `--engine`
names. `places` makes the folders of the runs, `playing` moves them to their ends, `verdict` is what
came of it and `markdown` shows that.
"""
