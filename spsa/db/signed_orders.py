"""What is signed of an iteration: as the master is about to write it, and as a worker is told it.

Both have to come to the same bytes, or nothing would be executed.
"""

from typing import Any

from spsa.db.entries import NewIteration
from spsa.db.rows import Claim
from spsa.security.signing import SignedOrder, SignedSide


def order_to_be(run: Any, number: int, new: NewIteration) -> SignedOrder:
    """What boxes will be told of an iteration; `run` is the row of its run."""
    return SignedOrder(
        run=run.name,
        run_seed=run.seed,
        iteration=number,
        purpose=new.purpose,
        plus=SignedSide(sha256=new.plus.sha256, options=new.plus_options),
        minus=SignedSide(sha256=new.minus.sha256, options=new.minus_options),
        terms=new.terms,
    )


def order_of(claim: Claim) -> SignedOrder:
    """What a box was told of the iteration that a claim is of."""
    return SignedOrder(
        run=claim.run_name,
        run_seed=claim.run_seed,
        iteration=claim.iteration_number,
        purpose=claim.purpose,
        plus=SignedSide(sha256=claim.plus.sha256, options=claim.plus.options),
        minus=SignedSide(sha256=claim.minus.sha256, options=claim.minus.options),
        terms=claim.terms,
    )
