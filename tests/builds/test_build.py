"""Builds for real: of a small crate by cargo, and of a small C++ engine by a declared command."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import pytest
from checkouts import FIXTURES, PLAIN, Bench, rendered
from engines import faulty
from golden import compare_cases

from spsa.builds import requirements
from spsa.builds.builder import BUILD_SECONDS, Builder, adopt, last_measured
from spsa.builds.commands import BuildCancelled, level_flags, made
from spsa.builds.recipe import Rendered, digest_of
from spsa.builds.sources.rewriting import rewrite
from spsa.core.game_settings import TimeControl, TimeKind
from spsa.core.parameter import Location
from spsa.errors import BuildFailed, InvalidInput, SmokeTestFailed, TuningError

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("cargo", "make", "c++"))), reason="needs cargo and a C++ compiler"
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """For tests that leave the checkout as it is; dependencies of a test are its own values."""
    return Bench(tmp_path_factory.mktemp("shared"))


@pytest.fixture
def own(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def state(source: Path) -> dict[str, tuple[int, bytes]]:
    files = [path for path in source.rglob("*") if path.is_file()]
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_two_sides_differ_are_built_once_and_the_checkout_is_left_alone(shared):
    before = state(shared.source)
    plus, minus = shared.builder().build(rendered(110), rendered(90))
    assert (plus.bench, minus.bench) == (110_061, 90_061)
    assert plus.sha256 != minus.sha256
    assert plus.path == shared.engines.resolve() / plus.sha256
    assert json.loads(plus.path.with_name(f"{plus.build_key}.json").read_text())["bench"] == 110_061
    assert plus.target.count("-") >= 2
    assert state(shared.source) == before
    log = shared.work / "plus" / "log" / "stdout.log"
    written = log.stat().st_mtime_ns
    assert shared.builder().build(rendered(110), rendered(90)) == (plus, minus)
    assert shared.builder().build(rendered(90), rendered(90)) == (minus, minus)
    assert log.stat().st_mtime_ns == written
    plus.path.write_bytes(b"damaged")
    again = shared.builder().build_one("plus", rendered(110))
    assert again.build_key == plus.build_key
    assert again.path.stat().st_size == again.size


@pytest.mark.slow
def test_every_rewrite_is_compiled_however_quickly_it_comes(shared):
    builder = shared.builder(bench=True)
    for margin in (41, 42, 43, 41):
        assert builder.build_one("minus", rendered(margin)).bench == margin * 1000 + 61


def test_a_compile_error_has_the_compilers_words_and_the_values(shared):
    builder = shared.builder()
    with pytest.raises(BuildFailed) as failure:
        builder.build(rendered(90), rendered(-5))
    with pytest.raises(BuildFailed, match="the base engine: "):
        builder.build(rendered(-5), rendered(-5), "base engine")
    assert not (shared.work / "plus" / "finished").exists(), "it compiles from scratch next time"
    words = str(failure.value)
    assert words.startswith("the minus engine: `cargo build` ended with 101\nerror[E0600]: cannot")
    assert "src/constants.rs:1" in words and "all of it is in " in words
    assert words.endswith("Its values: margin = -5")
    assert failure.value.exit_code == 4
    assert builder.build_one("minus", rendered(44)).bench == 44_061


def test_a_package_is_built_whose_constants_lie_outside_of_it(own):
    own.write("Cargo.toml", '[workspace]\nresolver = "2"\nmembers = ["one", "two"]\n')
    (own.source / "Cargo.lock").unlink()
    package = '[package]\nname = "{}"\nversion = "0.1.0"\n[[bin]]\nname="engine"\npath="main.rs"\n'
    text = (own.source / "src" / "main.rs").read_text()
    for name, added in (("one", ""), ("two", " 5 +")):
        own.write(f"{name}/Cargo.toml", package.format(name))
        outside = text.replace("mod constants;", '#[path = "../src/constants.rs"] mod constants;')
        own.write(f"{name}/main.rs", outside.replace("* 10 +", f"* 10 +{added}"))
    for name, nodes in (("one", 7061), ("two", 7066)):
        builder = own.builder(package=name, binary="engine")
        assert builder.build_one("plus", rendered(7)).bench == nodes
    with pytest.raises(BuildFailed, match="three"):
        own.builder(package="three", binary="engine").build_one("plus", rendered(7))


def test_of_what_cargo_makes_the_program_counts_with_its_triple():
    said = "Compiling\n"
    for name, kind in (("tern", "bin"), ("old", "example")):
        one = {"executable": f"/t/arm-x/release/{name}", "target": {"name": name, "kind": [kind]}}
        said += json.dumps({"reason": "compiler-artifact", **one}) + "\n"
    assert made(said, Path("/t"), Path()) == (Path("/t/arm-x/release/tern"), "arm-x")


def test_several_binaries_have_to_be_chosen_from(own):
    own.write("src/bin/other.rs", "is never compiled")
    with (own.source / "Cargo.toml").open("a") as file:
        file.write('\n[features]\nu=[]\n[[bin]]\nname="t"\npath="t.rs"\nrequired-features=["u"]\n')
    with pytest.raises(InvalidInput, match=r"name one of: other, tiny$"):
        own.builder().build_one("plus", rendered(1))
    with pytest.raises(BuildFailed, match="no bin target named `third`"):
        own.builder(binary="third").build_one("plus", rendered(1))
    tiny = own.builder(binary="tiny").build_one("plus", rendered(1))
    named = own.builder(binary="tiny", target=tiny.target).build_one("plus", rendered(1))
    assert (named.target, named.bench) == (tiny.target, 1_061)
    assert named.build_key != tiny.build_key


def test_what_cannot_be_built_is_refused(shared):
    with pytest.raises(InvalidInput, match=r"src/nothing\.rs.*no such file"):
        shared.builder().build_one("plus", Rendered({"src/nothing.rs": ""}, {}))
    no_cargo = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    with pytest.raises(BuildFailed, match=r"not found; install Rust \(https://rustup\.rs\)"):
        shared.builder(no_cargo).build_one("plus", rendered(1))


@pytest.mark.slow
def test_after_a_compilation_that_did_not_succeed_nothing_of_it_is_used(own):
    builder = own.builder()
    builder.build_one("plus", rendered(21))
    (own.work / "plus" / "finished").unlink()  # as a kill in the middle leaves it
    (damaged,) = (own.work / "plus").glob("target-*")
    for part in damaged.rglob("*.rlib"):
        part.write_bytes(b"cut off")
    assert builder.build_one("plus", rendered(22)).bench == 22_061
    (target,) = (own.work / "plus").glob("target-*")
    assert target != damaged and (own.work / "plus" / "finished").read_text() == target.name


def test_adopting_publishes_a_binary_as_it_is(shared, tmp_path):
    built = shared.builder().build_one("plus", rendered(110)).path
    (tmp_path / "My Engine 1.0").symlink_to(shutil.copy(built, tmp_path / "My Engine"))
    engine = adopt(tmp_path / "My Engine 1.0", tmp_path / "engines")
    assert engine.build_key == engine.sha256 == engine.path.name
    assert engine.bench == 110_061
    assert adopt(tmp_path / "My Engine", tmp_path / "engines") == engine
    with pytest.raises(TuningError, match="nothing cannot be read"):
        adopt(tmp_path / "nothing", tmp_path / "engines")
    (tmp_path / "text").write_text("no engine")
    with pytest.raises(SmokeTestFailed, match="text"):
        adopt(tmp_path / "text", tmp_path / "engines")


def test_a_key_names_all_that_decides_the_bytes(own, monkeypatch):
    def key(environment: dict[str, str] | None = None, **recipe: object) -> str:
        return own.builder({**PLAIN, **(environment or {})}, **recipe).compiler.key(rendered(1))

    first, compiler = key(), own.builder().compiler
    keys = [
        first,
        key({"RUSTFLAGS": "-C opt-level=1"}),
        key({"CARGO_PROFILE_RELEASE_LTO": "true"}),
        key(flags=("--release", "--features", "x")),
        key(target="x86_64-unknown-linux-musl"),
        key(binary="tiny"),
        key(package="tiny"),
        *(key(command=command, binary="tiny") for command in (("make",), ("make", "-j2"))),
        compiler.key(Rendered(rendered(1).files, {"margin": 2})),
        *map(compiler.key, (rendered(2), Rendered({}, {"margin": 1}))),
    ]
    assert key({"CARGO_TERM_COLOR": "always", "EDITOR": "ed"}) == first
    own.write("../.cargo/config.toml", "[term]\nquiet = true\n")  # around the work folder
    keys.append(key())
    own.write("src/main.rs", "fn main() {}")
    keys.append(key())
    monkeypatch.setattr(requirements, "_PROCESSOR", own.write("../features", "flags: avx2"))
    keys.append(key())
    monkeypatch.setenv("CARGO_HOME", str(own.write("../home/config", "").parent))
    (own.source / "../home/config").write_bytes(b"# \xff")
    keys.append(key())
    assert len(set(keys)) == len(keys)
    assert key({"CC": "cc", "CXX": "c++"}) == key({"CXX": "c++", "CC": "cc"})
    for_ever = "545c159c1248310714b8d6ad270e0be90c383b063604aeb3a677ec4c6755cc4d"
    assert digest_of({"b": [1, 2], "a": 1.5}) == for_ever


HEADER = (FIXTURES / "cpp" / "params.h").read_text(encoding="utf-8") + "// \xe4\n"


def tern_with(**values: int) -> Rendered:
    numbers = {Location(name): value for name, value in values.items()}
    return Rendered({"params.h": rewrite(HEADER, numbers, "params.h")}, dict(values))


def of_tern(bench: Bench, *command: str) -> Builder:
    usual = ("sh", "-c", "make CXXFLAGS='-O0 -std=c++17' && mv tern made && ln -s made tern")
    return bench.builder(command=command or usual, binary="tern")


@pytest.fixture(scope="module")
def tern(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    bench = Bench(tmp_path_factory.mktemp("tern"), "cpp")
    (bench.source / "params.h").write_bytes(HEADER.encode("latin-1"))
    return bench


def test_a_command_builds_both_sides_and_leaves_the_checkout_alone(tern):
    before = state(tern.source)
    plus, minus = of_tern(tern).build(tern_with(TEMPO_BONUS=90), tern_with(TEMPO_BONUS=2))
    assert plus.bench and minus.bench and plus.bench != minus.bench
    assert plus.target == minus.target != ""
    assert b"BONUS 90 " in (built := (tern.work / "plus" / "tree" / "params.h").read_bytes())
    assert built.replace(b"BONUS 90 ", b"BONUS 12 ") == HEADER.encode("latin-1")
    assert state(tern.source) == before


def test_compilers_are_ended_after_their_time_or_by_an_interrupt(tern, tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "begun")
    begun = os.open(tmp_path / "begun", os.O_RDWR)
    command = ("sh", "-c", f"echo > '{tmp_path}/begun'; sleep 600; true")
    with pytest.raises(BuildFailed, match="had not ended after 1 seconds"):
        tern.builder(command=command, binary="tern", timeout=1.0).build_one("plus", tern_with())
    os.read(begun, 99)
    builder = of_tern(tern, *command)
    with ThreadPoolExecutor(1) as pool:
        building = pool.submit(builder.build, tern_with(), tern_with(TEMPO_BONUS=3))
        os.read(begun, 1)
        builder.cancel()
        assert isinstance(building.exception(), BuildCancelled)
    with pytest.raises(BuildCancelled):
        builder.build_one("plus", tern_with())
    monkeypatch.setattr("spsa.builds.builder.wait", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        of_tern(tern, *command).build(tern_with(), tern_with(TEMPO_BONUS=3))
    os.close(begun)


@pytest.mark.skipif(sys.platform != "linux", reason="needs the kernel's parent-death signal")
def test_a_compiler_ends_with_a_master_that_is_killed(tmp_path):
    os.mkfifo(pipe := tmp_path / "pipe")
    words = ["sh", "-c", f"exec sleep 600 > '{pipe}'"]
    build = f"from spsa.builds.commands import *; Commands({{}}).answer({words}, Path('/'), 600)"
    with subprocess.Popen([sys.executable, "-c", build]) as master, pipe.open() as output:
        master.kill()
        assert output.read() == ""


def test_the_folder_of_the_binary_is_there_although_an_old_one_is_not_copied(tern):
    tern.write("bin/release/tern", "stale")
    command = ("sh", "-c", "ls -A bin/release >&2; exit 7")
    with pytest.raises(BuildFailed, match=r"ended with 7\n\nall of"):
        builder = tern.builder(command=command, binary="bin/release/tern")
        builder.build_one("plus", tern_with(TEMPO_BONUS=9))


def test_only_the_first_build_is_asked_for_all_searches_and_its_time_is_kept(tmp_path):
    own, nodes = Bench(tmp_path, "cpp"), TimeControl(kind=TimeKind.NODES, low=500, high=500)
    faulty.engine(own.source, "engine", log=tmp_path / "log")
    recipe = {"binary": "built", "bench": False, "time_controls": (nodes,)}
    builder = own.builder(command=("cp", "engine", "built"), **recipe)
    for margin, searches in ((1, 12), (2, 13)):
        builder.build_one("plus", Rendered({}, {"margin": margin}))
        assert (tmp_path / "log").read_text().count("go nodes") == searches
    assert 0 < last_measured(own.work, BUILD_SECONDS) < 300


@pytest.mark.slow
def test_nothing_that_an_earlier_make_left_is_used(tmp_path):
    # no rule of the Makefile mentions params.h: make alone would keep the objects of the first
    bench = Bench(tmp_path, "cpp")
    for name in ("main.o", "eval.o", "board.o", "tern"):
        bench.write(name, "stale")
    margins = (tern_with(RazorMargin=40), tern_with(RazorMargin=900))
    first, second = (of_tern(bench).build_one("plus", margin).bench for margin in margins)
    assert first != second
    assert (bench.source / "main.o").read_text() == "stale"


def test_a_build_that_fails_says_why(tern):
    """What a compiler says is its own, so only the first line and the last are compared."""

    def shown(files):
        command, number = shlex.split(files["command"]), len(files["command"])
        with pytest.raises(BuildFailed) as failed:
            of_tern(tern, *command).build_one("plus", tern_with(TEMPO_BONUS=number))
        lines = str(failed.value).replace(str(tern.source.parent.resolve()), "/here").splitlines()
        return [lines[0], lines[-1]] if command[0] == "make" else lines

    compare_cases(Path(__file__).with_name("failed_builds.txt"), shown)


def test_a_level_is_the_last_flag_of_the_first_place_that_has_any():
    def shown(files):
        configured = [files.pop(name) for name in sorted(files) if name.endswith(".toml")]
        return map(str, level_flags("v3", files, configured))

    compare_cases(Path(__file__).with_name("level_flags.txt"), shown)
