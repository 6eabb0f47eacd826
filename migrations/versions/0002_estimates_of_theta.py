"""estimates of theta beside the final one"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

Json = sa.JSON(none_as_null=True)
COLUMNS = ("theta_averaged", "theta_averaged_sd", "theta_supported", "theta_supported_sd")

THETAS = {
    "start": "start_theta",
    "final": "theta",
    "averaged": "theta_averaged",
    "averaged_sd": "theta_averaged_sd",
    "supported": "theta_supported",
    "supported_sd": "theta_supported_sd",
}
CHOSEN = ", ".join(f"MAX(CASE WHEN v.what = '{n}' THEN v.value END) AS {n}" for n in THETAS)
VALUES = " UNION ALL ".join(
    f"SELECT r.id, '{name}' AS what, p.key AS parameter,"
    " CAST(CAST(p.value AS TEXT) AS DOUBLE PRECISION) AS value"
    f" FROM spsa_run r, json_each(r.{column}) AS p"
    for name, column in THETAS.items()
)
VIEW = (
    f"SELECT r.name AS run, v.parameter, {CHOSEN}"
    f" FROM spsa_run r JOIN ({VALUES}) AS v ON v.id = r.id GROUP BY r.id, v.parameter"
)


def upgrade() -> None:
    for column in COLUMNS:
        op.add_column("spsa_run", sa.Column(column, Json, nullable=True))
    op.execute(f"CREATE VIEW spsa_theta AS {VIEW}")


def downgrade() -> None:
    op.execute("DROP VIEW spsa_theta")
    for column in COLUMNS:
        op.drop_column("spsa_run", column)
