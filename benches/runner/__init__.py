"""What the match runner costs, beside fastchess or a plain python-chess loop.

    python -m benches.runner speed --peer PATH_OF_FASTCHESS
    python -m benches.runner delay --peer PATH_OF_FASTCHESS
    python -m benches.runner agreement --peer PATH_OF_FASTCHESS

Every runner plays the same engines, openings and limits, in turns. The figures come from the kernel
(CPU, memory) and from the PGN file that each runner writes. Linux only.
"""
