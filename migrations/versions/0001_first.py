"""The first revision: all tables and views.

Nothing has been released yet, so this creates what the mapped classes say now, and changes with
them. The first release freezes it as text; later changes are revisions of their own.
"""

from alembic import op

from spsa.db.migrate import REVISION, create

revision = REVISION
down_revision = None


def upgrade() -> None:
    create(op.get_bind())
