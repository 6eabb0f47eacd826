"""`python -m worker`, and what worker.pyz starts, is `compete`."""

from worker.cli import main

if __name__ == "__main__":
    main()
