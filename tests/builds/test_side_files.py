"""A program makes the files of a side: what it writes is kept, and what goes wrong is told."""

import os
import tempfile
from pathlib import Path

import pytest
from golden import compare_cases

from spsa.builds import builder
from spsa.builds.artifacts import ArtifactStore
from spsa.builds.builder import FileMaker
from spsa.builds.commands import Commands
from spsa.builds.tree import pin
from spsa.core.uci_options import Declarations
from spsa.errors import BuildFailed, TuningError
from spsa.master.delivery import BinaryDelivery

SECRET = ("DATABASE_URL", "DATABASE_URL_FILE", "PGPASSWORD", "PGPASSFILE", "SPSA_TOKEN")
GOOD = """
import json, sys
from pathlib import Path
found = json.load(sys.stdin)
assert Path.cwd().parent.name == "work"
Path("EvalFile").write_text(Path(__file__).with_name("base").read_text() + json.dumps(found))
"""


def maker(folder: Path, program: str, timeout: float = 60.0) -> FileMaker:
    source = folder / "net"
    source.mkdir()
    (source / "net.py").write_text(program)
    (source / "base").write_text("base ")
    declared = Declarations()
    declared.read_line("option name EvalFile type string default <empty>")
    return FileMaker(
        pinned=pin(source, folder / "work", cargo=False),
        command=("python3", "net.py"),
        declared=declared,
        work=folder / "work",
        store=ArtifactStore(folder / "engines"),
        timeout=timeout,
        commands=Commands({**os.environ, "ABOUT": "s3cret", **dict.fromkeys(SECRET, "s3cret")}),
    )


def test_each_file_is_kept_by_its_hash_and_comes_from_the_pinned_program(tmp_path):
    making = maker(tmp_path, GOOD)
    (tmp_path / "net" / "base").write_text("changed since")
    first, again = (making.made("plus", {"a": 1.5, "b": -2})["EvalFile"] for _ in "12")
    assert first.path.read_text() == 'base {"a": 1.5, "b": -2}'
    assert first.path == again.path == tmp_path / "engines" / first.sha256
    assert making.made("minus", {"a": 1.25, "b": -2})["EvalFile"].sha256 != first.sha256
    assert {path.name for path in (tmp_path / "work").iterdir()} == {"pinned"}
    engine = making.store.add("a" * 64, tmp_path / "net" / "net.py", "triple", None, None)
    with BinaryDelivery(engine=engine, maker=making) as delivery:
        delivery.discard({first.sha256, engine.sha256})
    assert (first.path.exists(), engine.path.exists()) == (False, True), "all need the engine"
    with pytest.raises(TuningError, match="was stopped"):
        making.made("plus", {})
    (making.pinned.path / "base").chmod(0o644)
    (making.pinned.path / "base").write_text("altered")
    with pytest.raises(TuningError, match="was altered"):
        making.made("plus", {})


def test_what_goes_wrong_is_told_with_the_side_and_its_values(tmp_path):
    def shown(files):
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        making = maker(folder, files["program"], 1.0 if "sleep" in files["program"] else 60.0)
        with pytest.raises(BuildFailed) as failed:
            making.made("minus", {"a": 1.5})
        assert not (folder / "engines").exists()
        return str(failed.value).replace(str(making.pinned.path), "/net").splitlines()

    compare_cases(Path(__file__).with_name("side_files.txt"), shown)
    assert builder.MAX_SIDE_BYTES < 300_000_000
