"""`spsa-master` that asks a database that does not answer again soon, so that tests need not wait.

`python -m hasty_master run`; everything else is the product's.
"""

from spsa.master import session as session

session.RETRY_SECONDS = 0.5

from spsa.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
