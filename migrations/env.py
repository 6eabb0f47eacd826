"""Runs the migrations on the connection of `spsa.db.migrate`, inside its transaction."""

from alembic import context

from spsa.db.migrate import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    compare_type=True,
    compare_server_default=True,
)

with context.begin_transaction():
    context.run_migrations()
