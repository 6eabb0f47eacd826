"""The HTML report by what is in it: text, tables, figures, and nothing but its own scripts."""

import json
import re
import shutil
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from asking import Store
from builders import new_worker, space_from, stage
from served import page_lines

from spsa.db.tables import Event
from spsa.report.html import page
from spsa.report.report import report

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
TURNED = "abc\u202etxt.exe\x1b[31m\nnew"
PARAMS = "".join(
    f"[{name}]\nvalue = 100\nmin = 0\nmax = 200\nstep = 10\n" for name in ("margin", "depth")
)


@pytest.fixture(scope="module")
def told(sqlite_template, tmp_path_factory):
    """A run of two parameters and four iterations, validated, with a worker of a hostile name."""
    path = shutil.copy(sqlite_template, tmp_path_factory.mktemp("page") / "spsa.db")
    with Store(f"sqlite:///{path}", durable=False) as store:
        staged = stage(store, space_from(PARAMS), 4, planned=5)
        staged.validate()
        replace(staged, worker=store.register_worker(new_worker(HOSTILE))).iterate()
        store.pause("first", HOSTILE, "postgresql://spsa:geheim@db/x is slow")
        return report(store, staged.now())


class Elements(HTMLParser):
    """What a browser finds: each element with its attributes."""

    def __init__(self, html):
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def all(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture(scope="module")
def html(told):
    return page(told)


@pytest.fixture(scope="module")
def read(html):
    return Elements(html)


def test_nothing_of_it_is_fetched(read):
    assert {tag for tag, _ in read.found} & {"link", "iframe", "img", "form"} == set()
    for _, attributes in read.found:
        for name, value in attributes.items():
            assert not name.startswith("on") and name not in ("style", "src", "action")
            assert not (name.endswith("href") and not str(value).startswith("#")), value


def test_its_policy_allows_its_own_scripts_and_no_other(html, read):
    (policy,) = (meta["content"] for meta in read.all("meta") if "http-equiv" in meta)
    scripts = re.findall(r"<script(?: type=\"module\")?>(.*?)</script>", html, re.DOTALL)
    hashes = {f"'sha256-{b64encode(sha256(one.encode()).digest()).decode()}'" for one in scripts}
    rules = dict(rule.strip().split(" ", 1) for rule in str(policy).split(";"))
    assert len(hashes) == 2 and set(rules["script-src"].split()) == hashes
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"


def test_the_figures_are_in_it_with_every_point(html, told, read):
    (data,) = re.findall(r'<script type="application/json" id="figures">(.*?)</script>', html)
    figures = json.loads(data)
    places = [div["data-figure"] for div in read.all("div") if "data-figure" in div]
    assert set(figures) == set(places) == {"elo", "parameters", "moved"}
    assert len(figures["parameters"]["data"][0]["y"]) == len(told.history.ks) == 6
    ids = [value for _, attributes in read.found if (value := attributes.get("id"))]
    assert len(ids) == len(set(ids)), "no id twice"


def test_it_is_readable_as_text_and_no_name_is_markup(html, told, transcript):
    assert "geheim" not in html and "<script>alert" not in html and "<img" not in html
    lines = page_lines(html.partition("<script")[0])
    transcript.shows(
        "the report of a run", "\n".join(one for one in lines if " by spsa-tuner" not in one)
    )
    event = Event(at=datetime.now(UTC), kind="pause", actor=TURNED, detail={"reason": TURNED})
    run = replace(told.run, name=TURNED, reason=TURNED)
    odd = replace(told, events=(event,), status=replace(told.status, run=run))
    made = page(odd).partition("<script")[0]
    assert "\u202e" not in made and "\x1b" not in made
    assert "<h1>Tuning run abc\\u202etxt.exe\\x1b[31m\\nnew</h1>" in made
