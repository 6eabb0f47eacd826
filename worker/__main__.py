"""`python -m worker` is `compete`: loads the command without looking for garbage meanwhile.

What is loaded stays; who plays or serves has garbage looked for from `tune_interpreter` on.
"""

import gc


def main() -> None:
    """Run the command line of `compete`."""
    gc.disable()
    # Imported late: a tenth of the time that loading takes would go into those searches.
    from worker.cli import main as compete

    compete()


if __name__ == "__main__":
    main()
