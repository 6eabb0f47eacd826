"""The tables of runs: their iterations, engines, steps, purges and events.

The columns of the first version's `spsa_iteration` keep their names and meaning, because people
query them.
"""

import sqlalchemy as sa
from sqlalchemy import CheckConstraint, Column, ForeignKey, Table, UniqueConstraint

from spsa.db.schema_types import (
    GAMES,
    HALF_POINTS_AGREE,
    PAIRS,
    Identity,
    Json,
    UtcTime,
    counts,
    created_at,
    limited,
    metadata,
    now,
    one_of,
    written_out,
)
from spsa.lifecycle import BatchStatus, IterationStatus, Purpose, RunStatus

runs = Table(
    "spsa_run",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("name", sa.Text, nullable=False, unique=True),
    Column("status", sa.Text, nullable=False, server_default=RunStatus.RUNNING),
    Column("reason", sa.Text),  # why it is paused or stopped
    Column("seed", sa.BigInteger, nullable=False),
    Column("algorithm", sa.Text, nullable=False),
    Column("settings", Json, nullable=False),
    Column("space", Json, nullable=False),  # as `params set` has changed it
    Column("start_space", Json),  # that of the start; NULL if it was never changed
    Column("terms", Json, nullable=False),
    Column("source_sha256", sa.Text),
    Column("max_iterations", sa.Integer, nullable=False),
    Column("start_theta", Json, nullable=False),
    Column("theta", Json, nullable=False),  # the current values of the parameters
    Column("theta_averaged", Json),  # mean over the iterations, with more weight on late ones
    Column("theta_averaged_sd", Json),  # how far theta deviates from it
    Column("theta_supported", Json),  # the optimum that all games together suggest
    Column("theta_supported_sd", Json),  # its standard deviation
    Column("state", Json, nullable=False),
    Column("start_state", Json),  # of a fork: what its rule knew at the start
    Column("applied", sa.Integer, nullable=False, server_default="0"),
    Column("master_id", sa.Text),
    Column("epoch", sa.BigInteger, nullable=False, server_default="0"),
    Column("lease_expires_at", UtcTime),
    Column("builds", Json),  # what the master builds now, and how long builds take in seconds
    created_at(),
    Column("finished_at", UtcTime),
    # scheduling: the highest priority first, and equal ones by their shares of the slots
    Column("priority", sa.Integer, nullable=False, server_default="0"),
    Column("share", sa.Double, nullable=False, server_default="1"),
    Column(
        "purges", sa.Integer, nullable=False, server_default="0"
    ),  # how many; theta is computed without their results
    Column("changes", sa.Integer, nullable=False, server_default="0"),  # of the space
    *counts(),  # sums over its complete tuning iterations
    Column("bounded_steps", sa.Integer, nullable=False, server_default="0"),
    CheckConstraint("share > 0", name="share"),
    one_of("status", RunStatus, "status"),
    CheckConstraint("applied >= 0 AND applied <= max_iterations", name="applied"),
    CheckConstraint(
        "(status IN ('finished', 'stopped')) = (finished_at IS NOT NULL)", name="finished"
    ),
)

engines = Table(
    "spsa_engine",
    metadata,
    Column("sha256", sa.Text, primary_key=True),
    Column("build_key", sa.Text, nullable=False),
    Column("target", sa.Text, nullable=False),
    Column("size", sa.BigInteger, nullable=False),
    Column("bench", sa.BigInteger),
    Column("path", sa.Text, nullable=False),
    Column("bytes", sa.LargeBinary),
    created_at(),
    CheckConstraint("length(sha256) = 64", name="sha256"),
)

# books and side files of runs whose workers get their binaries from here
files = Table(
    "spsa_file",
    metadata,
    Column("sha256", sa.Text, primary_key=True),
    Column("bytes", sa.LargeBinary, nullable=False),
    created_at(),
    CheckConstraint("length(sha256) = 64", name="sha256"),
)

# two engines that a master wants for one kind of machine, and the worker that builds them
builds = Table(
    "spsa_build",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("build_key", sa.Text, nullable=False, unique=True),
    Column("requires", sa.Text, nullable=False),  # of the worker that builds, see spsa_iteration
    Column("archive_sha256", ForeignKey("spsa_file.sha256"), nullable=False),  # of the source
    Column("recipe", Json),  # what to do with it, see BuildOrder; NULL when it is done
    Column("wanted_until", UtcTime, nullable=False),  # no worker leases it later
    Column("status", sa.Text, nullable=False, server_default=BatchStatus.READY),
    Column("attempt", sa.Integer, nullable=False, server_default="0"),
    Column("max_attempts", sa.Integer, nullable=False),
    Column("claim_id", sa.Text, unique=True),
    Column("worker_id", ForeignKey("spsa_worker.id")),
    Column("leased_at", UtcTime),
    Column("lease_expires_at", UtcTime),
    Column("plus_sha256", ForeignKey("spsa_engine.sha256")),
    Column("minus_sha256", ForeignKey("spsa_engine.sha256")),
    Column("plus_bench", sa.BigInteger),
    Column("minus_bench", sa.BigInteger),
    Column("binary_requires", sa.Text),  # words, as spsa_worker.provides
    created_at(),
    CheckConstraint("status IN ('ready', 'leased', 'done')", name="status"),
    CheckConstraint("attempt >= 0", name="attempt"),
    CheckConstraint(
        "status <> 'leased' OR (claim_id IS NOT NULL AND lease_expires_at IS NOT NULL"
        " AND worker_id IS NOT NULL AND recipe IS NOT NULL)",
        name="leased",
    ),
    CheckConstraint(
        "(status = 'done') = (plus_sha256 IS NOT NULL AND minus_sha256 IS NOT NULL)", name="done"
    ),
    *limited("spsa_build"),
)

# a machine that could not build, and is not asked again
build_failures = Table(
    "spsa_build_failure",
    metadata,
    Column("build_id", ForeignKey("spsa_build.id"), primary_key=True),
    Column("machine", ForeignKey("spsa_machine.name"), primary_key=True),
    Column("reason", sa.Text, nullable=False),
    now("at"),
    *limited("spsa_build_failure"),
)

iterations = Table(
    "spsa_iteration",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("run_id", ForeignKey("spsa_run.id"), nullable=False),
    Column("iteration_number", sa.Integer, nullable=False),
    Column("purpose", sa.Text, nullable=False, server_default=Purpose.TUNE),
    Column("k", sa.Integer),  # position in the gain schedule; NULL for a validation
    Column("opened_on", sa.Integer, nullable=False),  # the results up to this k were in theta
    Column("in_flight", sa.Integer, nullable=False),
    Column("a_k", sa.Double),
    Column("c_k", sa.Double),
    Column("plus_engine_path", sa.Text, nullable=False),
    Column("minus_engine_path", sa.Text, nullable=False),
    Column("plus_sha256", ForeignKey("spsa_engine.sha256"), nullable=False),
    Column("minus_sha256", ForeignKey("spsa_engine.sha256"), nullable=False),
    Column("plus_options", Json, nullable=False),
    Column("minus_options", Json, nullable=False),
    Column("terms", Json, nullable=False),
    Column("timelow_ms", sa.Integer, nullable=False),
    Column("timehigh_ms", sa.Integer, nullable=False),
    Column("first_pair", sa.BigInteger, nullable=False),
    Column("rng_seed", sa.BigInteger, nullable=False),
    Column("target_games", sa.Integer, nullable=False),
    Column("games_played", sa.Integer, nullable=False, server_default="0"),
    *counts(),
    Column("status", sa.Text, nullable=False, server_default=IterationStatus.PENDING),
    Column("base_parameters", Json, nullable=False),
    Column("plus_parameters", Json, nullable=False),
    Column("minus_parameters", Json, nullable=False),
    Column("perturbation_signs", Json, nullable=False),
    # the gradient from this iteration's games alone, in Elo per step: E / (plus - minus), where
    # the divisor is at least 2 c_k; 0 for a parameter that was equal on both sides
    Column("gradient_estimate", Json),
    Column("elo_diff", sa.Double),
    Column("opened_by_epoch", sa.BigInteger, nullable=False),
    Column("completed_by_epoch", sa.BigInteger),
    created_at(),
    Column("completed_at", UtcTime),
    Column("signature", sa.Text),  # the master's, of what workers execute (ed25519)
    Column(
        "struck_games", sa.Integer, nullable=False, server_default="0"
    ),  # purged, and not played again
    Column(
        "opened_purges", sa.Integer, nullable=False, server_default="0"
    ),  # how many purges the run had had
    Column(
        "opened_changes", sa.Integer, nullable=False, server_default="0"
    ),  # how many changes of the space
    Column("requires", sa.Text),  # of a worker: a pattern that its `provides` is like
    # for a level of x86-64, or for a pattern like `requires`: sha256 and path of plus and minus
    Column("variants", Json),
    Column("match_number", sa.Integer),  # of a validation: the number of its match's first round
    Column("compared", Json),  # of a validation: what it compares
    UniqueConstraint("run_id", "iteration_number"),
    UniqueConstraint("run_id", "k"),
    one_of("status", IterationStatus, "status"),
    one_of("purpose", Purpose, "purpose"),
    CheckConstraint("(purpose = 'tune') = (k IS NOT NULL)", name="k"),
    CheckConstraint("target_games > 0 AND target_games % 2 = 0", name="whole_pairs"),
    CheckConstraint(
        f"games_played = {GAMES} AND games_played = 2 * {PAIRS} AND games_played + struck_games"
        f" <= target_games AND {HALF_POINTS_AGREE}",
        name="counts",
    ),
    CheckConstraint(
        "status <> 'complete' OR (games_played + struck_games = target_games"
        " AND completed_at IS NOT NULL)",
        name="complete",
    ),
    CheckConstraint(
        "struck_games = 0 OR (struck_games > 0 AND struck_games % 2 = 0"
        " AND status IN ('complete', 'abandoned'))",
        name="struck",
    ),
)

IS_OPEN = written_out(iterations.c.status, IterationStatus.PENDING, IterationStatus.IN_PROGRESS)
"""An iteration that waits to be played or is being played."""

IS_ABANDONED = written_out(iterations.c.status, IterationStatus.ABANDONED)
IS_VALIDATION = written_out(iterations.c.purpose, Purpose.VALIDATE)

steps = Table(
    "spsa_step",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("run_id", ForeignKey("spsa_run.id"), nullable=False),
    Column("iteration_id", ForeignKey("spsa_iteration.id"), nullable=False, unique=True),
    Column("k", sa.Integer, nullable=False),
    Column("theta_before", Json, nullable=False),
    Column("delta", Json, nullable=False),
    Column("theta_after", Json, nullable=False),
    Column("bounded", sa.Boolean, nullable=False),
    Column("epoch", sa.BigInteger, nullable=False),
    created_at(),
    UniqueConstraint("run_id", "k"),
)

purges = Table(
    "spsa_purge",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("run_id", ForeignKey("spsa_run.id"), nullable=False),
    Column("number", sa.Integer, nullable=False),  # of the run, from 1
    Column("applied", sa.Integer, nullable=False),  # the results up to this k were in theta
    Column("theta_before", Json, nullable=False),
    Column("theta_after", Json, nullable=False),
    Column("games", sa.Integer, nullable=False),
    Column("selection", Json, nullable=False),
    Column("actor", sa.Text, nullable=False),
    Column("reason", sa.Text, nullable=False),
    now("at"),
    UniqueConstraint("run_id", "number"),
    CheckConstraint("number > 0 AND applied >= 0 AND games >= 0", name="numbers"),
)

# a change of the space of a run that goes on
changes = Table(
    "spsa_change",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("run_id", ForeignKey("spsa_run.id"), nullable=False),
    Column("number", sa.Integer, nullable=False),  # of the run, from 1
    Column("applied", sa.Integer, nullable=False),  # the results up to this k were in theta
    Column("purges", sa.Integer, nullable=False),  # how many the run had had
    Column("space", Json, nullable=False),  # from now on
    Column("theta_before", Json, nullable=False),
    Column("theta_after", Json, nullable=False),
    Column("actor", sa.Text, nullable=False),
    Column("reason", sa.Text, nullable=False),
    now("at"),
    UniqueConstraint("run_id", "number"),
    CheckConstraint("number > 0 AND applied >= 0 AND purges >= 0", name="numbers"),
)

events = Table(
    "spsa_event",
    metadata,
    Column("id", Identity, primary_key=True),
    now("at"),
    Column("run_id", ForeignKey("spsa_run.id")),
    Column("kind", sa.Text, nullable=False),
    Column("actor", sa.Text, nullable=False),
    Column("detail", Json, nullable=False),
)
