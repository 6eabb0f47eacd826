"""`python -m worker` is `compete`. The garbage collector is off while the command is imported.

`tune_interpreter` turns it on again before the first game.
"""

import gc


def main() -> None:
    """Run the command line of `compete`."""
    gc.disable()
    # Imported late: garbage collection would take a tenth of the time of this import.
    from worker.cli import main as compete

    compete()


if __name__ == "__main__":
    main()
