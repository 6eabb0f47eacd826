"""[trust]: what workers may hold against a hostile database."""

from pathlib import Path

from spsa.config.section import Section


def read_signing_key(section: Section, folder: Path) -> Path | None:
    """The file of the key that signs what is executed; None where nothing is signed."""
    name = section.text("signing_key")
    section.close()
    return (folder / Path(name).expanduser()).resolve() if name else None
