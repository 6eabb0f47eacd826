"""What a machine provides and what a binary requires; binaries for several levels of x86-64."""

import platform
import shutil
import tempfile
from pathlib import Path

import pytest
from checkouts import PLAIN, Bench, rendered
from engines.faulty import WINNER, engine
from golden import compare_cases

from spsa.builds import requirements
from spsa.builds.recipe import Rendered
from spsa.builds.requirements import LEVELS, provided, required

OWN = requirements.own_level()


def test_what_machines_provide_and_files_require(tmp_path, monkeypatch):
    def shown(files):
        if "file" in files:
            (tmp_path / "engine").write_bytes(
                files["file"].encode("latin-1").decode("unicode_escape").encode("latin-1")
            )
            yield f"requires {required(tmp_path / 'engine')}"
            yield f"built for a level: {required(tmp_path / 'engine', 'x86-64-v3')}"
        elif "words" in files:
            levels = tuple(files["levels"].split())
            yield f"kind {requirements.kind_of(tuple(files['words'].split()), levels)}"
        elif "makefile" in files:
            yield from built(Path(tempfile.mkdtemp(dir=tmp_path)), **files)
        else:
            system, machine = files["system"].split()
            flags = f"processor : 0\nvendor\nflags\t\t: {files.get('flags', '')}\nbugs : avx2\n"
            (tmp_path / "cpuinfo").write_text(flags)
            with monkeypatch.context() as another:
                another.setattr(requirements, "_PROCESSOR", tmp_path / "cpuinfo")
                another.setattr(platform, "system", lambda: system)
                another.setattr(platform, "machine", lambda: machine)
                yield f"provides {' '.join(provided())}"
                yield f"own level {requirements.own_level()}"

    compare_cases(Path(__file__).with_name("requirements.txt"), shown)


def built(folder, makefile, command):
    own = Bench(folder, "cpp")
    engine(own.source, "engine", moves=WINNER)
    own.write("Makefile", "").write_bytes(f"# \xfc\n{makefile}\n".encode("latin-1"))
    words = ("sh", "-c", f"cp engine built; ! env | grep RUSTFLAGS # {command}")
    for level in (None, "x86-64-v3"):
        builder = own.builder(command=words, binary="built", level=level, bench=False)
        found = builder.build_one("plus", Rendered({}, {"margin": 1})).requires
        yield f"for {level}: {' '.join(found)}".replace(f"None: {OWN}", "None: own level")


ON_X86 = pytest.mark.skipif(
    "x86-64-v3" not in provided() or shutil.which("cargo") is None,
    reason="needs cargo and a processor of x86-64-v3",
)
CPU = "-Ctarget-cpu=x86-64-v2"
FLAGS = f"rustflags = ['--cfg', 'from_the_engine', '{CPU}']"
CONFIGURED = {
    "nothing": ("", {}, "x86-64"),
    "build": (f"[build]\n{FLAGS}", {}, "x86-64-v2"),
    "targets": (f"[target.'cfg(target_arch = \"x86_64\")']\n{FLAGS}", {}, "x86-64-v2"),
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
