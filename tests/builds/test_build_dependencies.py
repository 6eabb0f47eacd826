"""Dependencies are compiled once for both sides and for all iterations, by the real cargo."""

import os
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spsa.builds.builder import Builder
from spsa.builds.dependencies import dependencies_are_compiled
from spsa.builds.recipe import Recipe, Rendered
from spsa.builds.source import pin
from spsa.errors import InvalidInput

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")

CRATE = Path(__file__).parents[1] / "fixtures" / "crate"
NAMES = ("PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "TMPDIR")
LIBRARY = '[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n{needs}'


class Workspace:
    """A crate with two libraries, and a compiler that writes down what it compiles."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.source = Path(shutil.copytree(CRATE, root / "engine"))
        self._library("far", "")
        self._library("near", 'far = { path = "../far" }')
        manifest = self.source / "Cargo.toml"
        needs = '\n[dependencies]\nnear = { path = "near" }\n'
        manifest.write_text(manifest.read_text() + needs)
        main = self.source / "src" / "main.rs"
        main.write_text(main.read_text() + "\n#[used] static NEAR: fn() -> u64 = near::seven;\n")
        (self.source / "Cargo.lock").unlink()
        wrapper = root / "noting-rustc"
        wrapper.write_text(
            f'#!/bin/sh\ncase "$*" in *--crate-name*) echo "$*" >> \'{root}/compiled\' ;; esac\n'
            'exec "$@"\n'
        )
        wrapper.chmod(0o755)
        self.environment = {n: os.environ[n] for n in NAMES if n in os.environ} | {
            "RUSTC_WRAPPER": str(wrapper)
        }

    def _library(self, name: str, needs: str) -> None:
        folder = self.source / name
        (folder / "src").mkdir(parents=True)
        (folder / "Cargo.toml").write_text(LIBRARY.format(name=name, needs=needs))
        called = "far::seven()" if needs else "7"
        (folder / "src" / "lib.rs").write_text(f"pub fn seven() -> u64 {{ {called} }}\n")

    def builder(self, at_once: int = 1) -> Builder:
        work = self.root / "work"
        pinned, engines = pin(self.source, work), self.root / "engines"
        return Builder(pinned, Recipe(), work, engines, self.environment, at_once)

    def compiled(self) -> Counter[str]:
        lines = (self.root / "compiled").read_text().splitlines()
        words = (line.split() for line in lines)
        return Counter(each[each.index("--crate-name") + 1] for each in words)


def rendered(margin: int) -> Rendered:
    text = f"pub const MARGIN: u64 = {margin};\npub const DEPTH: u64 = 6;\n"
    return Rendered({"src/constants.rs": text}, {"margin": margin})


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_the_second_side_takes_the_dependencies_over(workspace: Workspace) -> None:
    plus, minus = workspace.builder().build(rendered(110), rendered(90))
    assert (plus.bench, minus.bench) == (110_061, 90_061)
    counts = workspace.compiled()
    assert (counts["far"], counts["near"]) == (1, 1)


@pytest.mark.slow
def test_iterations_that_are_built_at_a_time_share_them(workspace: Workspace) -> None:
    builder = workspace.builder(at_once=2)
    with ThreadPoolExecutor(2) as pool:
        pairs = [pool.submit(builder.build, rendered(100 + n), rendered(200 + n)) for n in range(2)]
        benches = [[engine.bench for engine in pair.result()] for pair in pairs]
    assert benches == [[100_061, 200_061], [101_061, 201_061]]
    counts = workspace.compiled()
    assert (counts["far"], counts["near"]) == (1, 1)


def test_a_package_is_built_whose_constants_lie_outside_of_it(tmp_path: Path) -> None:
    root = tmp_path / "engines"
    for name in ("one", "two"):
        member = shutil.copytree(CRATE, root / name)
        (member / "Cargo.toml").write_text(
            f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2021"\n'
            '[[bin]]\nname = "engine"\npath = "src/main.rs"\n'
        )
        (member / "Cargo.lock").unlink()
        main = member / "src" / "main.rs"
        shared = '#[path = "../../shared/constants.rs"]\nmod constants;'
        text = main.read_text().replace("mod constants;", shared)
        main.write_text(text.replace("* 10 +", "* 10 + 5 +") if name == "two" else text)
    (root / "shared").mkdir()
    shutil.move(root / "one" / "src" / "constants.rs", root / "shared")
    (root / "Cargo.toml").write_text('[workspace]\nresolver = "2"\nmembers = ["one", "two"]\n')
    values = Rendered({"shared/constants.rs": rendered(7).files["src/constants.rs"]}, {"margin": 7})
    environment = {n: os.environ[n] for n in NAMES if n in os.environ}

    def builder(package: str) -> Builder:
        recipe = Recipe(package=package, binary="engine")
        pinned = pin(root, tmp_path / "work")
        return Builder(pinned, recipe, tmp_path / "work", tmp_path / "out", environment)

    benches = {name: builder(name).build_one("plus", values).bench for name in ("one", "two")}
    assert benches == {"one": 7060, "two": 7065}
    with pytest.raises(InvalidInput, match=r'no package "three".*one, two'):
        builder("three").build_one("plus", values)


def test_a_build_that_fails_lets_the_others_go_on(workspace: Workspace) -> None:
    builder = workspace.builder()
    broken = Rendered({"src/constants.rs": "not Rust"}, {"margin": 1})
    with pytest.raises(Exception, match="the plus engine"):
        builder.build(broken, rendered(90))
    assert workspace.builder().build_one("minus", rendered(90)).bench == 90_061


ENDED = '{"reason":"compiler-artifact","package_id":"far","target":{"kind":["lib"]}}\n'
SCRIPT = '{"reason":"compiler-artifact","package_id":"far","target":{"kind":["custom-build"]}}\n'
BEGUN = "   Compiling far v0.1.0\n"
OWN = "   Compiling engine v0.1.0 (/tree)\n"


@pytest.mark.parametrize(
    ("stdout", "stderr", "done"),
    [
        ("", "", False),
        ("", BEGUN, False),
        (ENDED, BEGUN, False),
        ("", BEGUN + OWN, False),
        (SCRIPT, BEGUN + OWN, False),
        (ENDED, BEGUN + OWN, True),
        ("", OWN, True),
        (ENDED, BEGUN + "   Compiling engine v0.1.0 (/elsewhere)\n", False),
    ],
)
def test_when_the_dependencies_are_compiled(stdout: str, stderr: str, done: bool) -> None:
    assert dependencies_are_compiled(stdout, stderr, ["/tree/src/constants.rs"]) is done
