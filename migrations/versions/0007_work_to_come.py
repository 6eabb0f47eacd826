"""a worker told that there is work to come while a master sits at a run that is finished"""

import sqlalchemy as sa
from alembic import op

from spsa.store import functions

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        schema = op.get_bind().scalar(sa.text("SELECT quote_ident(current_schema())"))
        for statement in functions.statements(str(schema)):
            op.execute(statement)


def downgrade() -> None:
    """Nothing: the functions that are there answer for the tables of 0006 as well."""
