"""What a machine provides and what a binary requires; binaries for several levels of x86-64."""

import platform
import shutil

import pytest
from checkouts import PLAIN, Bench, rendered
from engines.faulty import WINNER, engine

from spsa.builds import requirements
from spsa.builds.recipe import Rendered
from spsa.builds.requirements import LEVELS, provided, required

V2 = "fpu sse2 pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm"
V3 = f"{V2} fma movbe xsave avx f16c abm bmi1 avx2 bmi2"
V4 = f"{V3} avx512f avx512dq avx512cd avx512bw avx512vl"
MACHINES = {"": 1, V2: 2, f"{V2} avx": 2, V3: 3, V4: 4, V4.replace("lahf_lm", ""): 1}


@pytest.mark.parametrize("flags", MACHINES)
def test_a_machine_provides_the_levels_whose_features_it_has(flags, tmp_path, monkeypatch):
    (tmp_path / "cpuinfo").write_text(f"processor : 0\nvendor\nflags\t\t: {flags}\nbugs : avx2\n")
    monkeypatch.setattr(requirements, "_PROCESSOR", tmp_path / "cpuinfo")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    assert provided() == ("linux", *LEVELS[: MACHINES[flags]])
    assert requirements.own_level() == LEVELS[MACHINES[flags] - 1]


@pytest.mark.parametrize(
    ("system", "machine", "words"),
    [("Darwin", "arm64", ("macos", "aarch64")), ("Linux", "ppc64le", ("linux", "ppc64le"))],
)
def test_another_machine_has_no_levels(system, machine, words, monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(platform, "system", lambda: system)
    assert provided() == words
    assert requirements.own_level() is None


@pytest.mark.parametrize(
    ("words", "levels", "kind"),
    [
        (("linux", *LEVELS[:3], "builds"), LEVELS[:2], ("linux", "x86-64-v2")),
        (("linux", *LEVELS[:2]), LEVELS[2:], ()),
        (("aarch64", "macos"), LEVELS, ("macos", "aarch64")),
        (("linux", "ppc64le"), (), ()),
    ],
)
def test_a_machine_is_of_one_kind(words, levels, kind):
    assert requirements.kind_of(words, levels) == kind


HEADER = b"\x7fELF\x02\x01\x01" + bytes(9)
V3_ALONE = ("x86-64-v3",)
FILES = {
    "x86-64": (HEADER + b"\x03\x00\x3e\x00", ("linux", "x86-64"), ("linux", "x86-64-v3")),
    "aarch64": (HEADER + b"\x02\x00\xb7\x00", ("linux", "aarch64"), ("linux", "aarch64")),
    "script": (b"#!/usr/bin/python3\nprint('uciok')\n", (), V3_ALONE),
    "cut off": (HEADER, (), V3_ALONE),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_requires_what_its_header_says(name, tmp_path):
    content, words, at_v3 = FILES[name]
    (tmp_path / "engine").write_bytes(content)
    assert required(tmp_path / "engine") == words
    assert required(tmp_path / "engine", "x86-64-v3") == at_v3


ON_X86 = pytest.mark.skipif(
    "x86-64-v3" not in provided() or shutil.which("cargo") is None,
    reason="needs cargo and a processor of x86-64-v3",
)
CPU = "-Ctarget-cpu=x86-64-v2"
CONFIGURED = {
    "nothing": ("", {}, "x86-64"),
    "build": (f"[build]\nrustflags = ['--cfg', 'from_the_engine', '{CPU}']", {}, "x86-64-v2"),
    "a kind of targets": (
        f"[target.'cfg(target_arch = \"x86_64\")']\nrustflags = ['--cfg', 'from_the_engine',"
        f" '{CPU}']",
        {},
        "x86-64-v2",
    ),
    "a variable": ("", {"RUSTFLAGS": f"--cfg from_the_engine {CPU}"}, "x86-64-v2"),
    "native": ("[build]\nrustflags = '-Ctarget-cpu=native'", {}, requirements.own_level()),
}
SHOWN = 'pub const LEVEL: u64 = if cfg!(target_feature = "avx2") { 3 } else { 2 };\n'


@ON_X86
@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGURED)
def test_cargo_builds_for_a_level_wherever_the_flags_of_the_engine_are(name, tmp_path):
    text, variables, usual = CONFIGURED[name]
    own = Bench(tmp_path)
    own.write(".cargo/config.toml", text)
    main = own.source / "src" / "main.rs"
    main.write_text(main.read_text().replace("constants::MARGIN *", "constants::LEVEL *"))
    environment = PLAIN | variables
    plain = own.builder(environment).build_one("plus", rendered(1, SHOWN))
    assert plain.requires == ("linux", usual)
    levels = {level: own.builder(environment, level=level) for level in LEVELS[1:3]}
    built = {level: each.build_one("plus", rendered(1, SHOWN), 1) for level, each in levels.items()}
    flagged = int("from_the_engine" in f"{text}{variables}")
    assert [(one.bench, one.requires) for one in built.values()] == [
        (2060 + flagged, ("linux", "x86-64-v2")),
        (3060 + flagged, ("linux", "x86-64-v3")),
    ]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("-march=native", (requirements.own_level(),)),
        ("-mcpu=native", (requirements.own_level(),)),
        ("-mtune=native", ()),
        ("-march=x86-64-v2 -O3", ("x86-64-v2",)),
    ],
)
def test_a_command_for_this_processor_requires_its_level_unless_another_is_declared(
    flags, words, tmp_path
):
    own = Bench(tmp_path, "cpp")
    engine(own.source, "engine", moves=WINNER)
    own.write("Makefile", f"CXXFLAGS = -O3 {flags}\n")
    for level, wanted in ((None, tuple(filter(None, words))), ("x86-64-v3", ("x86-64-v3",))):
        command = ("cp", "engine", "built")
        builder = own.builder(command=command, binary="built", level=level, bench=False)
        assert builder.build_one("plus", Rendered({}, {"margin": 1})).requires == wanted
