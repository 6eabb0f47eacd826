"""`python -m spsa.master` is `spsa-master`; without a command it is `spsa-master run`."""

import sys

from spsa.cli import main

if __name__ == "__main__":
    main(sys.argv[1:] or ["run"])
