"""[trust]: what workers may hold against a hostile database."""

from pathlib import Path

from spsa.config.section import Section


def read_signing_key(section: Section, folder: Path) -> Path | None:
    """The file of the key that signs what is executed; None where nothing is signed."""
    named = section.text("signing_key")
    section.close()
    return section.path("signing_key", folder) if named else None
