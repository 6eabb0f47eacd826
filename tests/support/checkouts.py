"""Checkouts of small engines, and builders for them."""

import os
import shutil
from pathlib import Path

from spsa.builds.builder import Builder
from spsa.builds.recipe import Recipe, Rendered
from spsa.builds.tree import pin

FIXTURES = Path(__file__).parents[1] / "fixtures"
NAMES = ("PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "TMPDIR")
PLAIN = {name: os.environ[name] for name in NAMES if name in os.environ}


class Bench:
    """A checkout, and builders for it that share a work directory and a folder of engines.

    `fixture` is "crate", so small that a build takes half a second, or "cpp".
    """

    def __init__(self, root: Path, fixture: str = "crate") -> None:
        self.source = Path(shutil.copytree(FIXTURES / fixture, root / "engine"))
        self.work = root / "work"
        self.engines = root / "engines"

    def builder(
        self, environment: dict[str, str] | None = None, at_once: int = 1, **recipe: object
    ) -> Builder:
        made = [self.source / str(recipe["binary"])] if "command" in recipe else []
        return Builder(
            pin(self.source, self.work, made, cargo="command" not in recipe),
            Recipe(**recipe),  # type: ignore[arg-type]
            self.work,
            self.engines,
            PLAIN if environment is None else environment,
            at_once,
        )

    def write(self, name: str, text: str) -> Path:
        path = self.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


def rendered(margin: int, rest: str = "") -> Rendered:
    """Values of the crate; an engine with them has the bench `1000 * margin + 61`."""
    text = f"pub const MARGIN: u64 = {margin};\npub const DEPTH: u64 = 6;\n{rest}"
    return Rendered({"src/constants.rs": text}, {"margin": margin})
