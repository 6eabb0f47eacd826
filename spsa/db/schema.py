"""The tables and views: the newest state that the migrations lead to.

Column names of the seed's `spsa_iteration` keep their names and meaning, because people query them.
CHECK constraints on statuses are computed from `lifecycle`. Every time is UTC and comes from the
database's own clock; the clocks of masters and workers decide nothing.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy import CheckConstraint, Column, ForeignKey, Table, UniqueConstraint
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.types import TypeDecorator

from spsa.core import limits
from spsa.db.sql_files import named_statements
from spsa.lifecycle import BatchStatus, IterationStatus, Purpose, RunStatus

REVISION = "0001"
"""The migration that leads to just these tables; a program works only with a database at it."""

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Identity = sa.BigInteger().with_variant(sa.Integer, "sqlite")
# json, not jsonb: text keeps every float to the bit, and the order of the parameters
Json = sa.JSON(none_as_null=True)


class UtcTime(TypeDecorator[datetime]):
    """An aware UTC time: timestamptz on PostgreSQL, sortable text in milliseconds on SQLite."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> Any:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(sa.TIMESTAMP(timezone=True))
        return dialect.type_descriptor(sa.Text())

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> datetime | None:
        if value is None:
            return None
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


class seconds_from_now(GenericFunction[datetime]):  # noqa: N801
    """The database's clock plus some seconds: `seconds_from_now(0)` is now."""

    type = UtcTime()
    inherit_cache = True


@compiles(seconds_from_now, "postgresql")
def _postgresql(element: Any, compiler: Any, **kw: Any) -> str:
    seconds = compiler.process(element.clauses, **kw)
    # not clock_timestamp(), which may differ from row to row and so is no condition of an index
    return f"(statement_timestamp() + make_interval(secs => CAST({seconds} AS double precision)))"


@compiles(seconds_from_now, "sqlite")
def _sqlite(element: Any, compiler: Any, **kw: Any) -> str:
    seconds = compiler.process(element.clauses, **kw)
    return f"strftime('%Y-%m-%d %H:%M:%f', 'now', {seconds} || ' seconds')"


def one_of(column: str, values: type[StrEnum], name: str) -> CheckConstraint:
    """A CHECK that allows just the words of an enumeration."""
    words = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({words})", name=name)


def limited(table: str) -> list[CheckConstraint]:
    """A CHECK for every number and text of a table that `limits` names, called after its column."""
    return [CheckConstraint(condition, name=column) for column, condition in limits.checks(table)]


def written_out(column: Column[str], *statuses: StrEnum) -> sa.ColumnElement[bool]:
    """The column is one of these, as text without parameters.

    SQLite uses a partial index only for a query that repeats the index's condition to the letter.
    """
    return column.in_([sa.literal_column(f"'{status}'", sa.Text) for status in statuses])


def _counts() -> list[Column[Any]]:
    # NOT NULL matters: a CHECK over a NULL count passes
    names = ("plus_wins", "minus_wins", "draws", *(f"ptnml_{i}" for i in range(5)))
    counts = [Column(name, sa.Integer, nullable=False, server_default="0") for name in names]
    return [*counts, Column("void_games", sa.BigInteger, nullable=False, server_default="0")]


def _created() -> Column[Any]:
    return Column(
        "created_at", UtcTime, nullable=False, server_default=sa.text("CURRENT_TIMESTAMP")
    )


PAIRS = "(ptnml_0 + ptnml_1 + ptnml_2 + ptnml_3 + ptnml_4)"
GAMES = "(plus_wins + minus_wins + draws)"
HALF_POINTS_AGREE = "plus_wins - minus_wins = 2 * (ptnml_4 - ptnml_0) + (ptnml_3 - ptnml_1)"

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
    Column("space", Json, nullable=False),
    Column("terms", Json, nullable=False),
    Column("source_sha256", sa.Text),
    Column("max_iterations", sa.Integer, nullable=False),
    Column("start_theta", Json, nullable=False),
    Column("theta", Json, nullable=False),  # the final one, once the run has ended
    Column("theta_averaged", Json),  # over the iterations, late ones weighing more
    Column("theta_averaged_sd", Json),  # how far theta wanders about it
    Column("theta_supported", Json),  # where all games together put the optimum
    Column("theta_supported_sd", Json),  # how uncertain that is
    Column("state", Json, nullable=False),
    Column("applied", sa.Integer, nullable=False, server_default="0"),
    Column("master_id", sa.Text),
    Column("epoch", sa.BigInteger, nullable=False, server_default="0"),
    Column("lease_expires_at", UtcTime),
    _created(),
    Column("finished_at", UtcTime),
    # who is served first: the highest priority, and among equals by their shares of the slots
    Column("priority", sa.Integer, nullable=False, server_default="0"),
    Column("share", sa.Double, nullable=False, server_default="1"),
    Column("purges", sa.Integer, nullable=False, server_default="0"),  # theta is without them
    *_counts(),  # over all its complete tuning iterations
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
    _created(),
    CheckConstraint("length(sha256) = 64", name="sha256"),
)

iterations = Table(
    "spsa_iteration",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("run_id", ForeignKey("spsa_run.id"), nullable=False),
    Column("iteration_number", sa.Integer, nullable=False),
    Column("purpose", sa.Text, nullable=False, server_default=Purpose.TUNE),
    Column("k", sa.Integer),  # position in the gain schedule; none for a validation
    Column("opened_on", sa.Integer, nullable=False),  # theta held the results through this k
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
    *_counts(),
    Column("status", sa.Text, nullable=False, server_default=IterationStatus.PENDING),
    Column("base_parameters", Json, nullable=False),
    Column("plus_parameters", Json, nullable=False),
    Column("minus_parameters", Json, nullable=False),
    Column("perturbation_signs", Json, nullable=False),
    # what the iteration's games alone say, in Elo per step, whatever the rule makes of it:
    # E / (plus - minus), never over less than 2 c_k, 0 where there was no difference
    Column("gradient_estimate", Json),
    Column("elo_diff", sa.Double),
    Column("opened_by_epoch", sa.BigInteger, nullable=False),
    Column("completed_by_epoch", sa.BigInteger),
    _created(),
    Column("completed_at", UtcTime),
    Column("signature", sa.Text),  # the master's, over what is to be executed (ed25519)
    Column("struck_games", sa.Integer, nullable=False, server_default="0"),  # and not played again
    Column("opened_purges", sa.Integer, nullable=False, server_default="0"),  # and after so many
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
"""An iteration that is to be played or being played."""

IS_ABANDONED = written_out(iterations.c.status, IterationStatus.ABANDONED)
IS_VALIDATION = written_out(iterations.c.purpose, Purpose.VALIDATE)

# a computer that plays; it belongs to the login that registered it and to who knows its secret, or,
# without a secret, to a login of its own (`grant --machine`)
machines = Table(
    "spsa_machine",
    metadata,
    Column("name", sa.Text, primary_key=True),
    Column("login", sa.Text, nullable=False, server_default=""),  # empty on SQLite
    Column("secret_sha256", sa.Text),
    _created(),
    UniqueConstraint("login", "secret_sha256"),
    *limited("spsa_machine"),
)

workers = Table(
    "spsa_worker",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("name", sa.Text, nullable=False, unique=True),
    Column("host", ForeignKey("spsa_machine.name"), nullable=False),
    Column("platform", sa.Text, nullable=False),
    Column("cores", sa.Integer, nullable=False),
    Column("concurrency", sa.Integer, nullable=False),
    Column("nps", sa.Double),
    Column("version", sa.Text, nullable=False),
    Column("first_seen_at", UtcTime, nullable=False, server_default=sa.text("CURRENT_TIMESTAMP")),
    Column("last_seen_at", UtcTime, nullable=False, server_default=sa.text("CURRENT_TIMESTAMP")),
    Column("confinement", sa.Text),  # how its engines are kept apart
    # what it has played of complete iterations
    Column("batches", sa.BigInteger, nullable=False, server_default="0"),
    Column("games", sa.BigInteger, nullable=False, server_default="0"),
    Column("void_games", sa.BigInteger, nullable=False, server_default="0"),
    Column("time_losses", sa.BigInteger, nullable=False, server_default="0"),
    *limited("spsa_worker"),
)

batches = Table(
    "spsa_batch",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("iteration_id", ForeignKey("spsa_iteration.id"), nullable=False),
    Column("seq", sa.Integer, nullable=False),
    Column("games", sa.Integer, nullable=False),
    Column("first_pair", sa.BigInteger, nullable=False),
    Column("seed", sa.BigInteger, nullable=False),
    Column("status", sa.Text, nullable=False, server_default=BatchStatus.READY),
    Column("attempt", sa.Integer, nullable=False, server_default="0"),
    Column("max_attempts", sa.Integer, nullable=False),
    Column("claim_id", sa.Text),
    Column("worker_id", ForeignKey("spsa_worker.id")),
    Column("leased_at", UtcTime),
    Column("lease_expires_at", UtcTime),
    *_counts(),
    Column("voids", Json),
    Column("plus_nodes", sa.BigInteger, nullable=False, server_default="0"),
    Column("minus_nodes", sa.BigInteger, nullable=False, server_default="0"),
    Column("moves", sa.BigInteger, nullable=False, server_default="0"),
    Column("plus_time_losses", sa.Integer, nullable=False, server_default="0"),
    Column("minus_time_losses", sa.Integer, nullable=False, server_default="0"),
    Column("seconds", sa.Double, nullable=False, server_default="0"),
    Column("reported_at", UtcTime),
    Column("last_error", sa.Text),
    Column("slot", sa.Integer),  # of its worker, from 0
    Column("think_seconds", sa.Double, nullable=False, server_default="0"),  # of both engines
    Column(
        "failures", sa.Integer, nullable=False, server_default="0"
    ),  # machines, see spsa_failure
    UniqueConstraint("iteration_id", "seq"),
    one_of("status", BatchStatus, "status"),
    CheckConstraint("games > 0 AND games % 2 = 0", name="whole_pairs"),
    CheckConstraint("attempt >= 0 AND failures >= 0", name="attempt"),
    CheckConstraint(
        "status <> 'leased' OR (claim_id IS NOT NULL AND lease_expires_at IS NOT NULL"
        " AND worker_id IS NOT NULL)",
        name="leased",
    ),
    CheckConstraint(
        f"CASE WHEN status = 'done' THEN claim_id IS NOT NULL AND {GAMES} = games"
        f" AND 2 * {PAIRS} = games AND {HALF_POINTS_AGREE} ELSE {GAMES} + {PAIRS} = 0 END",
        name="counts",
    ),
    *limited("spsa_batch"),
)

IS_READY = written_out(batches.c.status, BatchStatus.READY)
IS_LEASED = written_out(batches.c.status, BatchStatus.LEASED)

# a batch that a machine could not play: how often it said so, and how often its lease ran out
failures = Table(
    "spsa_failure",
    metadata,
    Column("batch_id", ForeignKey("spsa_batch.id"), primary_key=True),
    Column("machine", ForeignKey("spsa_machine.name"), primary_key=True),
    Column("failures", sa.Integer, nullable=False, server_default="0"),
    Column("lost_leases", sa.Integer, nullable=False, server_default="0"),
    Column("sha256", sa.Text),  # of the binary that is to blame, where that is known
    Column("reason", sa.Text),  # of the last failure
    Column("at", UtcTime, nullable=False, server_default=sa.text("CURRENT_TIMESTAMP")),
    CheckConstraint("failures >= 0 AND lost_leases >= 0", name="numbers"),
    *limited("spsa_failure"),
)

# a machine that is given no batches: of one binary, or none at all
set_aside = Table(
    "spsa_set_aside",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("machine", ForeignKey("spsa_machine.name"), nullable=False),
    Column("sha256", sa.Text),  # NULL: all binaries
    Column("reason", sa.Text, nullable=False),
    Column("actor", sa.Text, nullable=False),
    Column("at", UtcTime, nullable=False, server_default=sa.text("CURRENT_TIMESTAMP")),
    UniqueConstraint("machine", "sha256"),
    *limited("spsa_set_aside"),
)

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
    _created(),
    UniqueConstraint("run_id", "k"),
)

purges = Table(
    "spsa_purge",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("run_id", ForeignKey("spsa_run.id"), nullable=False),
    Column("number", sa.Integer, nullable=False),  # of the run, from 1
    Column("applied", sa.Integer, nullable=False),  # theta held the results through this k
    Column("theta_before", Json, nullable=False),
    Column("theta_after", Json, nullable=False),
    Column("games", sa.Integer, nullable=False),
    Column("selection", Json, nullable=False),
    Column("actor", sa.Text, nullable=False),
    Column("reason", sa.Text, nullable=False),
    Column("at", UtcTime, nullable=False, server_default=sa.text("CURRENT_TIMESTAMP")),
    UniqueConstraint("run_id", "number"),
    CheckConstraint("number > 0 AND applied >= 0 AND games >= 0", name="numbers"),
)

# a result as it was reported, and counts no more: nothing is ever forgotten
struck = Table(
    "spsa_struck",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("purge_id", ForeignKey("spsa_purge.id"), nullable=False),
    Column("iteration_id", ForeignKey("spsa_iteration.id"), nullable=False),
    Column("seq", sa.Integer, nullable=False),
    Column("games", sa.Integer, nullable=False),
    Column("played_again", sa.Boolean, nullable=False),  # its batch was free again afterwards
    Column("worker_id", ForeignKey("spsa_worker.id"), nullable=False),
    Column("claim_id", sa.Text, nullable=False),
    Column("attempt", sa.Integer, nullable=False),
    Column("slot", sa.Integer),
    *_counts(),
    Column("voids", Json),
    Column("plus_nodes", sa.BigInteger, nullable=False),
    Column("minus_nodes", sa.BigInteger, nullable=False),
    Column("moves", sa.BigInteger, nullable=False),
    Column("plus_time_losses", sa.Integer, nullable=False),
    Column("minus_time_losses", sa.Integer, nullable=False),
    Column("seconds", sa.Double, nullable=False),
    Column("reported_at", UtcTime, nullable=False),
    UniqueConstraint("purge_id", "iteration_id", "seq"),
    CheckConstraint(f"{GAMES} = games AND 2 * {PAIRS} = games", name="counts"),
)

events = Table(
    "spsa_event",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("at", UtcTime, nullable=False, server_default=sa.text("CURRENT_TIMESTAMP")),
    Column("run_id", ForeignKey("spsa_run.id")),
    Column("kind", sa.Text, nullable=False),
    Column("actor", sa.Text, nullable=False),
    Column("detail", Json, nullable=False),
)

_HIDDEN = ("claim_id", "bytes", "secret_sha256")


def shown(table: Table) -> list[Column[Any]]:
    """The columns that a viewer may see: a claim's id is the right to report it, bytes are long."""
    return [column for column in table.c if column.name not in _HIDDEN]


VIEWS = named_statements("views.sql")
"""What people ask of the database: view -> its query."""

PRIVATE_VIEWS = named_statements("worker_views.sql")
"""What claims are made from; the id of a claim is for its holder alone."""

MISCOUNTED = sa.table("spsa_miscounted", sa.column("iteration_id"))
