"""What the match runner costs, beside fastchess or beside the loop that most people write.

    python -m benches.runner speed --peer PATH_OF_FASTCHESS
    python -m benches.runner delay --peer PATH_OF_FASTCHESS
    python -m benches.runner agreement --peer PATH_OF_FASTCHESS

Every contender plays the same engines, openings and limits, in turns, and is read from the same
two places: what the kernel says of its process, and the PGN it writes. Linux only.
"""
