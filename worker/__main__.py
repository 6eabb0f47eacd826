"""`python -m worker` is `compete`."""

from worker.cli import main

main()
