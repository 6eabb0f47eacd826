"""Dependencies are compiled once for both sides and for all iterations, by the real cargo."""

import json
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from checkouts import FIXTURES, PLAIN, Bench, rendered

from spsa.builds.cargo import binary_of
from spsa.builds.recipe import Rendered
from spsa.errors import BuildFailed, InvalidInput

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")

LIBRARY = '[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n{needs}'


class Workspace(Bench):
    """A crate with two libraries, and a compiler that writes down what it compiles."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.compilations = root / "compiled"
        self._library("far", "", "7")
        self._library("near", 'far = { path = "../far" }', "far::seven()")
        manifest, main = self.source / "Cargo.toml", self.source / "src" / "main.rs"
        manifest.write_text(f'{manifest.read_text()}\n[dependencies]\nnear = {{ path = "near" }}\n')
        main.write_text(main.read_text() + "\n#[used] static NEAR: fn() -> u64 = near::seven;\n")
        (self.source / "Cargo.lock").unlink()
        wrapper = root / "noting-rustc"
        noting = f"echo \"$*\" >> '{self.compilations}'"
        wrapper.write_text(f'#!/bin/sh\ncase "$*" in *--crate-name*) {noting} ;; esac\nexec "$@"\n')
        wrapper.chmod(0o755)
        self.environment = PLAIN | {"RUSTC_WRAPPER": str(wrapper)}

    def _library(self, name: str, needs: str, value: str) -> None:
        self.write(f"{name}/Cargo.toml", LIBRARY.format(name=name, needs=needs))
        self.write(f"{name}/src/lib.rs", f"pub fn seven() -> u64 {{ {value} }}\n")

    @property
    def libraries(self) -> list[int]:
        """How often each of the two was compiled."""
        words = (line.split() for line in self.compilations.read_text().splitlines())
        counts = Counter(each[each.index("--crate-name") + 1] for each in words)
        return [counts["far"], counts["near"]]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_the_second_side_takes_the_dependencies_over(workspace: Workspace) -> None:
    plus, minus = workspace.builder(workspace.environment).build(rendered(110), rendered(90))
    assert (plus.bench, minus.bench) == (110_061, 90_061)
    assert workspace.libraries == [1, 1]


@pytest.mark.slow
def test_iterations_that_are_built_at_a_time_share_them(workspace: Workspace) -> None:
    builder = workspace.builder(workspace.environment, at_once=2)
    with ThreadPoolExecutor(2) as pool:
        pairs = [pool.submit(builder.build, rendered(100 + n), rendered(200 + n)) for n in range(2)]
        benches = [[engine.bench for engine in pair.result()] for pair in pairs]
    assert benches == [[100_061, 200_061], [101_061, 201_061]]
    assert workspace.libraries == [1, 1]


def test_a_package_is_built_whose_constants_lie_outside_of_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    shutil.rmtree(bench.source)
    for name in ("one", "two"):
        member = shutil.copytree(FIXTURES / "crate", bench.source / name)
        (member / "Cargo.toml").write_text(
            f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2021"\n'
            '[[bin]]\nname = "engine"\npath = "src/main.rs"\n'
        )
        (member / "Cargo.lock").unlink()
        main = member / "src" / "main.rs"
        shared = '#[path = "../../shared/constants.rs"]\nmod constants;'
        text = main.read_text().replace("mod constants;", shared)
        main.write_text(text.replace("* 10 +", "* 10 + 5 +") if name == "two" else text)
    (bench.source / "shared").mkdir()
    shutil.move(bench.source / "one" / "src" / "constants.rs", bench.source / "shared")
    bench.write("Cargo.toml", '[workspace]\nresolver = "2"\nmembers = ["one", "two"]\n')
    values = Rendered({"shared/constants.rs": rendered(7).files["src/constants.rs"]}, {"margin": 7})
    for name, count in (("one", 7060), ("two", 7065)):
        builder = bench.builder(package=name, binary="engine")
        assert builder.build_one("plus", values).bench == count
    with pytest.raises(InvalidInput, match=r'no package "three".*one, two'):
        bench.builder(package="three", binary="engine").build_one("plus", values)


@pytest.mark.parametrize(
    ("default", "named", "found"),
    [("engine", None, "engine"), ("engine", "other", "other"), (None, "engine", "engine")],
)
def test_of_several_binaries_the_default_one_is_built(
    default: str | None, named: str | None, found: str
) -> None:
    targets = [{"name": name, "kind": ["bin"]} for name in ("engine", "other")]
    packages = [{"name": "one", "default_run": default, "targets": targets}]
    metadata = json.dumps({"packages": packages})
    assert binary_of(metadata, Path("source"), None, named) == found


def test_a_build_that_fails_lets_the_others_go_on(workspace: Workspace) -> None:
    broken = Rendered({"src/constants.rs": "not Rust"}, {"margin": 1})
    with pytest.raises(BuildFailed, match="the plus engine"):
        workspace.builder().build(broken, rendered(90))
    assert workspace.builder().build_one("minus", rendered(90)).bench == 90_061
