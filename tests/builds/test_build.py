"""Builds with the real cargo, of a crate so small that one takes half a second."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spsa.builds.builder import Builder, adopt
from spsa.builds.recipe import Recipe, Rendered
from spsa.builds.smoke import SmokeTimeouts
from spsa.builds.source import pin
from spsa.builds.subprocesses import BuildCancelled
from spsa.errors import BuildFailed, InvalidInput, SmokeTestFailed, SourceChanged, TuningError

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")

CRATE = Path(__file__).parents[1] / "fixtures" / "crate"
CONSTANTS = "src/constants.rs"
PLAIN = {
    name: value
    for name, value in os.environ.items()
    if name in {"PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "TMPDIR"}
}
NO_CARGO = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}


def rendered(margin: int, rest: str = "") -> Rendered:
    text = f"pub const MARGIN: u64 = {margin};\npub const DEPTH: u64 = 6;\n{rest}"
    return Rendered({CONSTANTS: text}, {"margin": margin})


class Bench:
    """A checkout, and builders for it that share a work directory and a folder of engines."""

    def __init__(self, root: Path) -> None:
        self.source = Path(shutil.copytree(CRATE, root / "engine"))
        self.work = root / "work"
        self.engines = root / "engines"

    def builder(self, environment: dict[str, str] | None = None, **settings: object) -> Builder:
        return Builder(
            pin(self.source, self.work),
            Recipe(**settings),  # type: ignore[arg-type]
            self.work,
            self.engines,
            PLAIN if environment is None else environment,
        )

    def write(self, name: str, text: str) -> Path:
        path = self.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """For tests that leave the checkout as it is; dependencies of a test are its own values."""
    return Bench(tmp_path_factory.mktemp("shared"))


@pytest.fixture
def own(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


class SlowCompiler:
    """Says when it begins to compile, and then takes a minute, or `SLOW` seconds."""

    def __init__(self, directory: Path) -> None:
        os.mkfifo(directory / "begun")
        self._begun = os.open(directory / "begun", os.O_RDWR)
        self.script = directory / "slow-rustc"
        self.script.write_text(
            f"#!/bin/sh\nbegun='{directory}/begun'\n"
            'case "$*" in *src/main.rs*) echo > "$begun"; sleep "$SLOW" ;; esac\nexec "$@"\n'
        )
        self.script.chmod(0o755)
        self.environment = PLAIN | {"RUSTC_WRAPPER": str(self.script), "SLOW": "60"}

    def wait(self) -> None:
        os.read(self._begun, 1)

    def close(self) -> None:
        os.close(self._begun)


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[SlowCompiler]:
    compiler = SlowCompiler(tmp_path)
    yield compiler
    compiler.close()


def state(source: Path) -> dict[str, tuple[int, bytes]]:
    files = [path for path in source.rglob("*") if path.is_file()]
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_two_sides_differ_and_the_checkout_is_left_alone(shared: Bench) -> None:
    before = state(shared.source)
    plus, minus = shared.builder().build(rendered(110), rendered(90))
    assert (plus.bench, minus.bench) == (110_061, 90_061)
    assert plus.sha256 != minus.sha256
    assert plus.path == shared.engines.resolve() / plus.sha256
    index = plus.path.with_name(f"{plus.build_key}.json")
    assert json.loads(index.read_text())["bench"] == 110_061
    assert plus.target.count("-") >= 2
    assert state(shared.source) == before


def test_the_same_values_are_not_built_again(shared: Bench) -> None:
    first = shared.builder().build(rendered(110), rendered(90))
    before = (shared.work / "plus" / "log" / "stdout.log").stat().st_mtime_ns
    assert shared.builder().build(rendered(110), rendered(90)) == first
    assert (shared.work / "plus" / "log" / "stdout.log").stat().st_mtime_ns == before


def test_equal_sides_are_one_build(shared: Bench) -> None:
    plus, minus = shared.builder().build(rendered(90), rendered(90))
    assert plus == minus


@pytest.mark.slow
def test_every_rewrite_is_compiled_however_quickly_it_comes(shared: Bench) -> None:
    builder = shared.builder(bench=True)
    margins = [41, 42, 43, 41]
    built = [builder.build_one("minus", rendered(margin)).bench for margin in margins]
    assert built == [margin * 1000 + 61 for margin in margins]


def test_a_compile_error_has_the_compilers_words_and_the_values(shared: Bench) -> None:
    builder = shared.builder()
    with pytest.raises(BuildFailed) as failure:
        builder.build(rendered(90), rendered(-5))
    words = str(failure.value)
    assert "the minus engine, with margin = -5" in words
    assert "cannot apply unary operator `-` to type `u64`" in words
    assert "src/constants.rs:1" in words
    assert "Compiling" not in words
    assert failure.value.exit_code == 4
    assert builder.build_one("minus", rendered(44)).bench == 44_061


def test_both_sides_failing_is_told_once(shared: Bench) -> None:
    with pytest.raises(BuildFailed) as failure:
        shared.builder().build(rendered(-1), rendered(-2))
    words = str(failure.value)
    assert "the plus engine, with margin = -1" in words
    assert "The other failed too: the minus engine, with margin = -2" in words
    assert words.count("error[E0600]") == 1


def test_a_damaged_engine_is_built_again(shared: Bench) -> None:
    builder = shared.builder()
    engine = builder.build_one("plus", rendered(51))
    engine.path.write_bytes(b"damaged")
    again = builder.build_one("plus", rendered(51))
    assert again.build_key == engine.build_key
    assert again.path.stat().st_size == again.size


def test_the_engines_own_flags_hold_until_the_user_gives_others(shared: Bench) -> None:
    user = PLAIN | {"RUSTFLAGS": "--cfg from_the_user"}
    ours = shared.builder().build_one("plus", rendered(61))
    theirs = shared.builder(user).build_one("plus", rendered(61))
    assert (ours.bench, theirs.bench) == (61_061, 61_062)
    assert ours.build_key != theirs.build_key


def test_flags_from_above_the_checkout_hold_too(own: Bench) -> None:
    (own.source / ".cargo" / "config.toml").unlink()
    above = own.source.parent / ".cargo" / "config.toml"
    above.parent.mkdir()
    above.write_text('[build]\nrustflags = ["--cfg", "from_the_user"]\n')
    own.work = own.source.parent.parent / f"{own.source.parent.name}-elsewhere"
    assert own.builder().build_one("plus", rendered(7)).bench == 7_062
    shutil.rmtree(own.work)


def test_a_build_script_does_not_see_the_database(own: Bench) -> None:
    own.write(
        "build.rs",
        'fn main() { assert!(std::env::var("DATABASE_URL").is_err(), "it sees the database") }',
    )
    secret = PLAIN | {"DATABASE_URL": "postgresql://secret", "PGPASSWORD": "secret"}
    assert own.builder(secret).build_one("plus", rendered(1)).bench == 1_061


@pytest.mark.slow
def test_a_source_without_a_lock_file_gets_one_for_the_run(own: Bench) -> None:
    (own.source / "Cargo.lock").unlink()
    builder = own.builder(flags=("--release", "--locked"))
    builder.build(rendered(1), rendered(2))
    locks = {(own.work / side / "tree" / "Cargo.lock").read_text() for side in ("plus", "minus")}
    assert len(locks) == 1
    assert not (own.source / "Cargo.lock").exists()


def test_several_binaries_have_to_be_chosen_from(own: Bench) -> None:
    own.write("src/bin/other.rs", "fn main() {}")
    with pytest.raises(InvalidInput, match="name one of: other, tiny"):
        own.builder().build_one("plus", rendered(1))
    with pytest.raises(InvalidInput, match='no binary "third"'):
        own.builder(binary="third").build_one("plus", rendered(1))
    assert own.builder(binary="tiny").build_one("plus", rendered(1)).bench == 1_061


def test_a_target_is_named(own: Bench) -> None:
    host = own.builder().build_one("plus", rendered(1)).target
    named = own.builder(target=host).build_one("plus", rendered(1))
    assert (named.target, named.bench) == (host, 1_060 + 1)
    assert named.build_key != own.builder().build_key(rendered(1))


def test_an_engine_that_never_says_uciok_is_not_published(own: Bench) -> None:
    own.write("src/main.rs", 'mod constants; fn main() { println!("{}", constants::MARGIN) }')
    with pytest.raises(SmokeTestFailed) as failure:
        own.builder(smoke=SmokeTimeouts(handshake=5)).build_one("plus", rendered(12345))
    assert "the plus engine, with margin = 12345" in str(failure.value)
    assert "  | 12345" in str(failure.value)
    assert not list(own.engines.iterdir())


def test_a_file_that_the_source_does_not_have(shared: Bench) -> None:
    with pytest.raises(InvalidInput, match=r"src/nothing\.rs.*no such file"):
        shared.builder().build_one("plus", Rendered({"src/nothing.rs": ""}, {}))


def test_without_rust_it_is_said_how_to_get_it(shared: Bench) -> None:
    with pytest.raises(BuildFailed, match=r"not found; install Rust \(https://rustup\.rs\)"):
        shared.builder(NO_CARGO).build_one("plus", rendered(1))


def test_a_build_that_takes_too_long_is_ended(own: Bench, slow: SlowCompiler) -> None:
    builder = own.builder(slow.environment, timeout=1.0)
    with pytest.raises(BuildFailed, match="had not ended after 1 seconds"):
        builder.build_one("plus", rendered(1))


def test_cancelling_ends_both_compilers(own: Bench, slow: SlowCompiler) -> None:
    builder = own.builder(slow.environment)
    with ThreadPoolExecutor(1) as pool:
        building = pool.submit(builder.build, rendered(1), rendered(2))
        slow.wait()
        builder.cancel()
        assert isinstance(building.exception(), BuildCancelled)
    with pytest.raises(BuildCancelled):
        builder.build_one("plus", rendered(3))


KILLED = """
import sys, test_build
from pathlib import Path
bench = test_build.Bench.__new__(test_build.Bench)
bench.source, bench.work, bench.engines = map(Path, sys.argv[1:4])
environment = test_build.PLAIN | {"RUSTC_WRAPPER": sys.argv[4], "SLOW": "1"}
bench.builder(environment).build_one("plus", test_build.rendered(666))
"""


@pytest.mark.slow
def test_a_killed_builder_does_no_harm(own: Bench, slow: SlowCompiler) -> None:
    """Its orphaned cargo is at work still when the next builder rewrites the same copy."""
    places = [str(own.source), str(own.work), str(own.engines), str(slow.script)]
    killed = subprocess.Popen(
        [sys.executable, "-c", KILLED, *places],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(CRATE.parents[1]), *sys.path])},
    )
    slow.wait()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert own.builder().build_one("plus", rendered(8)).bench == 8_061
    assert own.builder().build_one("plus", rendered(666)).bench == 666_061


@pytest.mark.slow
def test_after_a_compilation_that_did_not_succeed_nothing_of_it_is_used(own: Bench) -> None:
    builder = own.builder()
    builder.build_one("plus", rendered(21))
    (own.work / "plus" / "unfinished").touch()  # as a kill in the middle leaves it
    (damaged,) = (own.work / "plus").glob("target-*")
    for part in damaged.rglob("*.rlib"):
        part.write_bytes(b"cut off")
    assert builder.build_one("plus", rendered(22)).bench == 22_061
    assert [path.name for path in (own.work / "plus").glob("target-*")] == ["target-1"]
    assert not (own.work / "plus" / "unfinished").exists()


def test_adopting_publishes_a_binary_as_it_is(shared: Bench, tmp_path: Path) -> None:
    built = shared.builder().build_one("plus", rendered(110)).path
    (tmp_path / "My Engine 1.0").symlink_to(shutil.copy(built, tmp_path / "My Engine"))
    engine = adopt(tmp_path / "My Engine 1.0", tmp_path / "engines")
    assert engine.build_key == engine.sha256 == engine.path.name
    assert engine.bench == 110_061
    assert adopt(tmp_path / "My Engine", tmp_path / "engines") == engine


def test_what_cannot_be_adopted_is_named(tmp_path: Path) -> None:
    with pytest.raises(TuningError, match="nothing cannot be read"):
        adopt(tmp_path / "nothing", tmp_path / "engines")
    (tmp_path / "text").write_text("no engine")
    with pytest.raises(SmokeTestFailed, match="text"):
        adopt(tmp_path / "text", tmp_path / "engines")


def test_a_key_names_all_that_decides_the_bytes(shared: Bench) -> None:
    def key(environment: dict[str, str] | None = None, **settings: object) -> str:
        return shared.builder({**PLAIN, **(environment or {})}, **settings).build_key(rendered(1))

    keys = [
        key(),
        key({"RUSTFLAGS": "-C opt-level=1"}),
        key({"RUSTFLAGS": "-C target-cpu=native"}),
        key({"CARGO_PROFILE_RELEASE_LTO": "true"}),
        key(flags=("--release", "--features", "x")),
        key(target="x86_64-unknown-linux-musl"),
        key(binary="tiny"),
        shared.builder().build_key(rendered(2)),
        shared.builder().build_key(Rendered(rendered(1).files, {"margin": 2})),
    ]
    assert len(set(keys)) == len(keys)
    assert key() == key({"CARGO_TERM_COLOR": "always", "EDITOR": "ed"}) == keys[0]


def test_what_is_made_for_one_processor_is_not_taken_for_another(own: Bench) -> None:
    features = own.write("../features", "avx2")
    rustc = own.write("../rustc", f"#!/bin/sh\n[ $1 = -vV ] || cat '{features}'\n")
    rustc.chmod(0o755)
    here = PLAIN | {"RUSTC": str(rustc)}

    def keys() -> tuple[str, ...]:
        flags = ("-C target-cpu=native", "-C target-cpu=x86-64-v2")
        builders = [own.builder(here | {"RUSTFLAGS": each}) for each in flags]
        return tuple(builder.build_key(rendered(1)) for builder in builders)

    native, portable = keys()
    features.write_text("avx512")
    assert native != keys()[0]
    assert portable == keys()[1]


def test_the_source_is_part_of_the_key(own: Bench) -> None:
    before = own.builder().build_key(rendered(1))
    own.write("src/main.rs", "fn main() {}")
    assert own.builder().build_key(rendered(1)) != before


def test_a_deleted_working_folder_is_made_again(own: Bench) -> None:
    builder = own.builder(bench=False)
    shutil.rmtree(own.work)
    engine = builder.build_one("plus", rendered(31))
    assert engine.path.is_file()
    shutil.rmtree(own.work)
    builder.build(rendered(31), rendered(31))
    own.write("src/new.rs", "// not there when the run began\n")
    shutil.rmtree(own.work)
    with pytest.raises(SourceChanged, match="is gone with its list of files"):
        builder.build_one("plus", rendered(32))
