"""a worker hands in results and takes out batches in one call; checks are functions"""

import sqlalchemy as sa
from alembic import op

from spsa import soundness
from spsa.store import functions

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

REPLACED = ("spsa_claim", "spsa_report")
OVERLOADS = sa.text(
    "SELECT oid::regprocedure::text FROM pg_proc WHERE proname = :name"
    " AND pronamespace = current_schema()::regnamespace"
)


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    for table in soundness.TABLES:
        op.execute(soundness.making(table))
        for check in soundness.merged(table):
            op.drop_constraint(check.name, table.name)
        op.create_check_constraint(soundness.NAME, table.name, soundness.called(table))
    for name in REPLACED:
        for signature in connection.scalars(OVERLOADS, {"name": name}).all():
            op.execute(f"DROP FUNCTION {signature}")
    schema = connection.scalar(sa.text("SELECT quote_ident(current_schema())"))
    for statement in functions.statements(str(schema)):
        op.execute(statement)


def downgrade() -> None:
    """A program of an older version makes its own functions of a worker anew."""
    if op.get_bind().dialect.name != "postgresql":
        return
    for table in soundness.TABLES:
        op.drop_constraint(op.f(f"ck_{table.name}_{soundness.NAME}"), table.name)
        op.execute(soundness.dropping(table))
        for check in soundness.merged(table):
            op.create_check_constraint(check.name, table.name, str(check.sqltext))
