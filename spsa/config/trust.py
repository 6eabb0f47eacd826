"""Reads [trust], which protects workers against a hostile database."""

from pathlib import Path

from spsa.config.section import Section


def read_signing_key(section: Section, folder: Path) -> Path | None:
    """The file of the key that signs binaries and commands; None if nothing is signed."""
    named = section.text("signing_key")
    section.close()
    return section.path("signing_key", folder) if named else None
