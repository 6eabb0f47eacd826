"""What the master signs of an iteration, and what a worker checks of a claim.

Both functions have to give the same bytes, or the worker refuses the batch.
"""

from typing import Any

from spsa.db.entries import NewIteration
from spsa.db.rows import Claim
from spsa.security.signing import SignedOrder, SignedSide


def order_for(run: Any, number: int, new: NewIteration) -> SignedOrder:
    """The order of an iteration that is about to be written; `run` is the row of its run."""
    return SignedOrder(
        run=run.name,
        run_seed=run.seed,
        iteration=number,
        purpose=new.purpose,
        plus=SignedSide(sha256=new.plus.sha256, options=new.plus_options),
        minus=SignedSide(sha256=new.minus.sha256, options=new.minus_options),
        variants={
            level: (plus.sha256, minus.sha256) for level, (plus, minus) in new.variants.items()
        },
        game_settings=new.game_settings,
    )


def order_of(claim: Claim) -> SignedOrder:
    """The order that a worker checks before it plays the batch of a claim."""
    return SignedOrder(
        run=claim.run_name,
        run_seed=claim.run_seed,
        iteration=claim.iteration_number,
        purpose=claim.purpose,
        plus=SignedSide(sha256=claim.plus.sha256, options=claim.plus.options),
        minus=SignedSide(sha256=claim.minus.sha256, options=claim.minus.options),
        variants={
            level: (plus.sha256, minus.sha256) for level, (plus, minus) in claim.variants.items()
        },
        game_settings=claim.game_settings,
    )
