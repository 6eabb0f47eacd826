"""The HTML report by what is in it: text, tables, pictures, and nothing that a page could run."""

import re
import shutil
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from builders import new_worker
from tuned import iterate, space_from, tuned, validated

from spsa.config.projection import params_file
from spsa.db import Store
from spsa.db.tables import Event
from spsa.report import export_html as page_module
from spsa.report.export_html import inline_svg, page
from spsa.report.export_json import Report, report

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
TURNED = "abc\u202etxt.exe\x1b[31m\nnew"
PARAMS = "".join(
    f"[{name}]\nvalue = 100\nmin = 0\nmax = 200\nstep = 10\n" for name in ("margin", "depth")
)


@pytest.fixture(scope="module")
def told(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A run of two parameters and four iterations, validated, with a worker of a hostile name."""
    path = shutil.copy(sqlite_template, tmp_path_factory.mktemp("page") / "spsa.db")
    with Store(f"sqlite:///{path}", durable=False) as store:
        staged = tuned(store, space_from(PARAMS), 4, planned=5)
        validated(staged)
        iterate(replace(staged, worker=store.register_worker(new_worker(HOSTILE))))
        store.pause("first", HOSTILE, "postgresql://spsa:geheim@db/x is slow")
        return report(store, staged.now())


class Reader(HTMLParser):
    """What a browser finds: elements with their attributes, and the text of each kind."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "wbr":
            return
        self._open.append(tag)
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open[-1]][-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def html(told: Report) -> str:
    return page(told)


@pytest.fixture(scope="module")
def read(html: str) -> Reader:
    return Reader(html)


def test_nothing_of_it_is_fetched_or_run(html: str, read: Reader) -> None:
    assert {tag for tag, _ in read.elements} & {"script", "link", "iframe", "img", "form"} == set()
    for _, attributes in read.elements:
        for name, value in attributes.items():
            assert not name.startswith("on") and name not in ("style", "src", "action")
            assert not (name.endswith("href") and not str(value).startswith("#")), value
    assert "@import" not in html and "url(http" not in html


def test_its_policy_allows_its_own_style_and_nothing_else(html: str, read: Reader) -> None:
    (policy,) = (
        meta["content"]
        for meta in read.all("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    )
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def test_the_pictures_are_in_it_with_every_point(html: str, told: Report, read: Reader) -> None:
    labels = [svg["aria-label"] for svg in read.all("svg")]
    assert len(labels) == len(read.all("figcaption")) == 5
    assert labels[0] == "Path of theta"
    for svg in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        ElementTree.fromstring(svg)
    line = re.search(r'<g id="theta-theta-0">\s*<path d="([^"]*)"', html)
    assert line is not None
    assert len(re.findall("[ML]", line.group(1))) == len(told.history.ks) == 6
    ids = [value for _, attributes in read.elements if (value := attributes.get("id"))]
    assert len(ids) == len(set(ids)), "no id twice"
    used = {str(use["xlink:href"])[1:] for use in read.all("use")}
    used |= set(re.findall(r"url\(#([^)]*)\)", html))
    assert used and used <= set(ids), "every reference leads somewhere"


def test_every_parameter_is_in_it_from_start_to_final(told: Report, read: Reader) -> None:
    cells = read.texts["td"]
    for tuned_one in told.status.parameters:
        assert tuned_one.name in cells
        assert f"{tuned_one.steps_moved:+.2f}" in cells
        assert f"{tuned_one.value:.6g}" in cells
        assert told.status.trails[tuned_one.name].sparkline in cells
    assert {"mixture", "42", "games_per_iteration", "time_control.kind", "paused"} <= set(cells)


def test_the_summary_is_in_sentences(read: Reader) -> None:
    said = " ".join(read.texts["p"])
    assert "run first: paused, 5 of 5 iterations applied, 40 games, mixture, seed 42" in said
    assert "reason: postgresql://spsa:***@db/x is slow" in said
    assert "strength: tuned against start, games 8" in said
    assert "only a validation measures it" in said and "verdict: " in said


def test_alarms_have_a_list_of_their_own(html: str, told: Report, read: Reader) -> None:
    assert [alarm.kind for alarm in told.status.alarms] == ["paused"]
    assert read.texts["strong"] == ["first"] and len(read.all("li")) == 1
    assert not any(sentence.startswith("alarm") for sentence in read.texts["p"])


def test_no_password_is_in_it(html: str) -> None:
    assert "geheim" not in html


def test_how_to_reproduce_it_is_said(read: Reader) -> None:
    said = "".join(read.texts["pre"])
    assert "spsa-master replay --run first" in said and "--seed 42" in said
    assert "[margin]\nvalue = 100\nmin = 0\nmax = 200\nstep = 10\n" in said


def test_the_params_file_is_read_as_the_same_space() -> None:
    space = space_from(
        'constraints = ["a < b"]\n[a]\nvalue = 1\nmin = 0\nmax = 9\nstep = 1\nnote = "x\\ny"\n'
        "[b]\nvalue = 2.5\nmin = 0\nmax = 9\nstep = 0.5\nscale = 100\nactive = false\n"
        '[c]\nvalue = 3\nmin = 0\nmax = 9\nstep = 1\ntype = "float"\narray = "T.1"\nfirst = 2\n'
        'knob = "base"\noption = "My C"\ngroup = "g"\n'
        '[d]\nvalue = 3\nmin = 0\nmax = 9\nstep = 1\narray = "T.1"\nfirst = 2\n'
        'knob = "per_index"\n'
        '[e]\nvalue = 3\nmin = 0\nmax = 9\nstep = 1\ntable = "src/x.rs::m::U[2]"\nknob = "bias"\n'
    )
    assert space_from(params_file(space)).to_json() == space.to_json()


def test_hostile_names_are_text(html: str, read: Reader) -> None:
    assert "<script" not in html and "<img" not in html
    assert read.texts["td"].count(HOSTILE) >= 2, "the worker, and who paused"


def test_characters_that_turn_text_around_are_escaped(
    told: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "can_draw", lambda: False)  # pictures have tests of their own
    event = Event(at=datetime.now(UTC), kind="pause", actor=TURNED, detail={"reason": TURNED})
    run = replace(told.run, name=TURNED, reason=TURNED)
    odd = replace(told, events=(event,), status=replace(told.status, run=run))
    made = page(odd)
    assert "\u202e" not in made and "\x1b" not in made
    assert Reader(made).texts["h1"] == ["Tuning run abc\\u202etxt.exe\\x1b[31m\\nnew"]


def test_without_matplotlib_it_says_what_is_missing(
    told: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "can_draw", lambda: False)
    made = Reader(page(told))
    assert made.all("svg") == [] and page_module.WITHOUT_PICTURES in made.texts["p"]
    assert "margin" in made.texts["td"]


def test_styles_become_attributes_and_ids_get_a_name() -> None:
    svg = (
        b'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
        b' width="9pt" height="9pt"><metadata/><defs><style>*{}</style><path id="a"/></defs>'
        b'<g clip-path="url(#c)"><use xlink:href="#a" style="fill: none; stroke: #b0b0b0"/></g>'
        b'<text style="font: 9px \'A\', serif; text-anchor: end">url(#c) id="a"</text></svg>'
    )
    made = inline_svg(svg, "p", "a label")
    root = ElementTree.fromstring(made)
    assert "style" not in made and "metadata" not in made and "width" not in root.attrib
    (use,) = root.iter("{http://www.w3.org/2000/svg}use")
    assert use.attrib == {
        "{http://www.w3.org/1999/xlink}href": "#p-a",
        "fill": "none",
        "stroke": "#b0b0b0",
    }
    (text,) = root.iter("{http://www.w3.org/2000/svg}text")
    assert text.attrib == {"font-size": "9px", "font-family": "'A', serif", "text-anchor": "end"}
    assert text.text == 'url(#c) id="a"' and 'clip-path="url(#p-c)"' in made


def test_a_run_that_has_not_begun_has_sentences_and_no_pictures(sqlite_url: str) -> None:
    with Store(sqlite_url, durable=False) as store:
        found = page(report(store, tuned(store, space_from(PARAMS), 0).now()))
    assert "<svg" not in found and "<figure" not in found
    assert "Path of theta: Theta has not moved yet." in found
    assert "<code>spsa-master validate</code> plays one." in found
