"""params.toml: what it may say, and every way it can be wrong."""

import json
from pathlib import Path

import pytest
from golden import compare_cases

from spsa.config.source import check_against_source, read_sources
from spsa.config.space import load_space
from spsa.core.params import Space
from spsa.errors import InvalidInput

FIXTURES = Path(__file__).parents[1] / "fixtures" / "rust"
KEYS = "value = 200\nmin = 50\nmax = 400\nstep = 20\n"
TABLE = f"[margin]\n{KEYS}"


@pytest.fixture
def params(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("params.toml")

    def write(text):
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def faults(path):
    with pytest.raises(InvalidInput) as refused:
        load_space(path)
    assert refused.value.exit_code == 2
    return refused.value.lines


def test_what_each_file_says_and_what_is_wrong_with_it(params):
    def shown(files):
        try:
            space = load_space(params(files["params.toml"]))
        except InvalidInput as refused:
            assert refused.exit_code == 2
            return refused.lines
        if source := files.get("src/c.rs"):
            text = (FIXTURES / source).read_text("utf-8") if source.endswith(".rs") else source
            told = check_against_source(space, {"src/c.rs": text})
            return map(str, told or ["it fits"])
        written = json.loads(json.dumps(space.to_json()))
        assert Space.from_json(written) == space
        tables = zip(space.parameters, written["parameters"], strict=True)
        return [
            *(f"line {p.line}: {json.dumps(table)}" for p, table in tables),
            *map(json.dumps, written["constraints"]),
        ]

    compare_cases(Path(__file__).with_name("params.txt"), shown)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = " + "[" * 5000, "nested too deeply"),
        (f"{TABLE}# \0\n", "params.toml:6: [params.toml] is not TOML"),
        (f"{TABLE}# \xff\n".encode("latin-1"), "params.toml:6: [params.toml] is not UTF-8"),
        (
            "".join(f"[p{i}]\n" for i in range(5001)),
            "5001 parameters are too many; tune at most 5000",
        ),
        ("x" * 5_000_000, "it has more than 4,194,304 bytes"),
    ],
    ids=["deep", "a null", "not UTF-8", "many", "long"],
)
def test_what_is_no_file_of_a_person_is_refused_in_few_words(params, text, said):
    found = faults(params(text))
    assert said in found[0] and len(found[0]) < 500


def test_a_byte_order_mark_is_no_part_of_the_file(params):
    assert load_space(params(TABLE.encode("utf-8-sig"))) == load_space(params(TABLE))


def test_missing_files_and_folders_are_faults(tmp_path):
    assert "does not exist" in faults(tmp_path / "none.toml")[0]
    assert "Is a directory" in faults(tmp_path)[0]
    assert "cannot be read" in faults(tmp_path / ("x" * 5000))[0]
    assert "cannot be read" in faults(Path("a\0b"))[0]
    (tmp_path / "loop").symlink_to("loop")
    assert "cannot be read" in faults(tmp_path / "loop")[0]


def test_what_is_said_of_megabytes_of_nonsense_is_short(params):
    (fault,) = faults(params("x" * 5_000_000))
    assert len(fault) < 500


def test_sources_are_read_with_their_line_ends(tmp_path, params):
    (tmp_path / "a.rs").write_bytes(b"const A: i32 = 1;\r\n")
    space = load_space(params(f"[a]\n{KEYS}"))
    assert read_sources(space, tmp_path, "a.rs") == {"a.rs": "const A: i32 = 1;\r\n"}
    (tmp_path / "bad.rs").write_bytes(b"\xff")
    space = load_space(params(f"[a]\n{KEYS}[b]\n{KEYS}constant = 'bad.rs::B'\n"))
    with pytest.raises(InvalidInput) as refused:
        read_sources(space, tmp_path, "none.rs")
    own, other = refused.value.lines
    assert own.startswith(f"{tmp_path}/none.rs: [none.rs] cannot be read: No such file")
    assert other.startswith(f"params.toml:6: [b] {tmp_path}/bad.rs cannot be read: it is not UTF-8")


@pytest.mark.timeout(60)
def test_a_long_chain_of_constraints_is_kept_in_linear_time(params):
    chain = ", ".join(f'"p{i} <= p{i + 1}"' for i in reversed(range(2999)))
    many = "".join(f"[p{i}]\n{KEYS}" for i in range(3000))
    space = load_space(params(f"constraints = [{chain}]\n{many}"))
    values = {p.name: 400 - i % 100 for i, p in enumerate(space.parameters)}
    kept = [*space.rounded(space.steps(values)).values()]
    assert kept == sorted(kept) and kept[-1] == values["p2999"]
