"""The pages in headless Chromium: what is drawn, what a keyboard reaches, what axe-core finds."""

import os
import re
import shutil
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from builders import Stage
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, expect, sync_playwright
from served import HOSTILE, hostile_run, people, serving, space
from tuned import play, tuned, validated

from spsa.db import Store
from spsa.lifecycle import RunStatus
from spsa.report.export_html import page
from spsa.report.export_json import report
from spsa.report.history import history
from spsa.report.status import estimate
from spsa.report.text import number

pytestmark = pytest.mark.slow

PAGES = (
    "/",
    "/run",
    "/parameters?sort=moved",
    "/parameter?name=margin",
    "/workers",
    "/iterations",
    "/iteration?number=8",
    "/batch?number=8&seq=0",
    "/events",
    "/nothing",
)
PHONE, SCREEN = (390, 844), (1280, 900)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    program = shutil.which("chromium")
    if program is None:
        reason = "no Chromium: apt-get install chromium"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def store(shared_sqlite_url: str) -> Iterator[Store]:
    with Store(shared_sqlite_url, durable=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared_sqlite_url(
    sqlite_template: os.PathLike[str], tmp_path_factory: pytest.TempPathFactory
) -> str:
    return f"sqlite:///{shutil.copy(sqlite_template, tmp_path_factory.mktemp('seen') / 'x.db')}"


@pytest.fixture(scope="module")
def played(store: Store) -> Stage:
    return hostile_run(store)


@pytest.fixture(scope="module")
def address(played: Stage, store: Store) -> Iterator[str]:
    with serving(store) as address:
        yield address


class Seen:
    """A page, and everything it complains about."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", self._refuse)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and "404" not in message.text:
            self.complaints.append(message.text)

    def _refuse(self, dialog: Dialog) -> None:
        self.complaints.append(f"a dialog: {dialog.message}")
        dialog.dismiss()


@pytest.fixture
def seen(chromium: Browser, request: pytest.FixtureRequest) -> Iterator[Seen]:
    scheme, (width, height) = getattr(request, "param", ("light", SCREEN))
    context = chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": height})
    context.set_default_timeout(90_000)  # the first answer of a busy machine
    yield Seen(context.new_page())
    context.close()


@pytest.mark.parametrize(
    "seen",
    [("light", SCREEN), ("dark", SCREEN), ("light", PHONE)],
    ids=["light", "dark", "phone"],
    indirect=True,
)
def test_every_page_is_well_made(seen: Seen, address: str) -> None:
    for path in PAGES:
        seen.page.goto(address + path)
        found = Axe().run(seen.page)
        assert found.violations_count == 0, f"{path}: {found.generate_report()}"
        assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        assert seen.page.locator("img").count() == 0
        folder = os.environ.get("SPSA_SCREENSHOTS")
        if folder:
            look = (
                f"{seen.page.viewport_size['width']}-{path.strip('/').partition('?')[0] or 'runs'}"  # type: ignore[index]
            )
            scheme = seen.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
            seen.page.screenshot(path=f"{folder}/{look}-{scheme}.png", full_page=True)
    assert seen.complaints == []


def test_the_series_are_those_of_the_history(seen: Seen, address: str, played: Stage) -> None:
    seen.page.goto(f"{address}/parameter?name=margin")
    expected = next(p for p in history(played.store, played.now()).parameters if p.name == "margin")
    drawn = seen.page.locator("#path-theta").get_attribute("d") or ""
    points = [tuple(map(float, pair.split(","))) for pair in re.split("[ML]", drawn)[1:]]
    assert len(points) == len(expected.theta) == 7
    highest = max(range(7), key=lambda i: expected.theta[i])
    assert min(y for _, y in points) == points[highest][1]
    box = seen.page.locator("#path-theta").bounding_box()
    assert box is not None and box["width"] > 300 and box["height"] > 20
    stroke = seen.page.locator("#path-theta").evaluate("path => getComputedStyle(path).stroke")
    assert stroke == "rgb(31, 95, 168)"
    assert seen.page.locator("#value").inner_text() == number(expected.theta[-1])
    seen.page.locator("#path-numbers > summary").click()
    last = seen.page.locator("#path-numbers tbody tr").last.locator("td").all_inner_texts()
    assert last[:3] == ["6", "48", number(expected.theta[-1])]
    assert seen.complaints == []


def test_the_strength_curve_is_drawn_with_its_band(seen: Seen, address: str, played: Stage) -> None:
    validated(played, games=40, opened_on=3)
    seen.page.goto(f"{address}/run")
    seen.page.locator("#validations-strength").wait_for()

    def drawn(id_: str) -> list[tuple[float, float]]:
        d = seen.page.locator(f"#validations-{id_}").get_attribute("d") or ""
        return [(float(x), float(y)) for x, y in re.findall(r"([\d.]+),([\d.]+)", d)]

    found = history(played.store, played.now())
    assert found.strength is not None
    match, curve = estimate(found.validations[0].tally), found.strength.curve
    assert match is not None
    (_, zero), *_ = drawn("zero")
    (at, of_match), _ = drawn("elo")
    begin, middle, _ = drawn("strength")
    assert (begin[1], middle[0]) == (zero, at)
    scale = (zero - of_match) / match.value  # of the chart, an Elo
    assert zero - middle[1] == pytest.approx(scale * curve.elo[1], abs=0.2)
    first, upper, _, _, lower, _ = drawn("band")
    assert first == begin and upper[0] == lower[0] == at
    assert lower[1] - upper[1] == pytest.approx(scale * 2 * curve.errors[1], abs=0.3)
    box = seen.page.locator("#validations-band").bounding_box()
    assert box is not None and box["width"] > 100 and box["height"] > 20
    seen.page.locator("#validations-numbers > summary").click()
    cell = seen.page.locator("#validations-numbers tbody td").last
    assert cell.inner_text() == f"{curve.elo[2]:+.1f} ± {curve.errors[2]:.1f}"
    assert seen.complaints == []


def test_a_hostile_name_is_text(seen: Seen, address: str) -> None:
    seen.page.goto(f"{address}/parameters")
    seen.page.get_by_role("link", name=HOSTILE, exact=True).click()
    assert seen.page.locator("h1").inner_text() == f"Parameter {HOSTILE}"
    assert seen.complaints == []


def test_a_page_follows_the_run_without_a_reload(seen: Seen, address: str, played: Stage) -> None:
    seen.page.goto(f"{address}/run")
    seen.page.evaluate("window.isTheSame = true")
    seen.page.locator("#results-numbers > summary").click()
    assert seen.page.locator("#applied").inner_text() == "6 of 10"
    play(played, "more", 10.0)
    played.apply()
    seen.page.get_by_text("7 of 10", exact=True).wait_for()
    theta = seen.page.locator("#path-0-theta")
    expect(theta).to_have_attribute("d", re.compile("M[^L]+(L[^L]+){7}"), timeout=90_000)
    assert seen.page.evaluate("window.isTheSame") is True
    assert seen.page.locator("#results-numbers[open]").count() == 1
    assert seen.page.evaluate("document.activeElement.localName") == "summary"
    assert seen.complaints == []


def test_the_keyboard_skips_to_the_content(seen: Seen, address: str) -> None:
    seen.page.goto(f"{address}/run")
    seen.page.keyboard.press("Tab")
    assert seen.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert seen.page.locator(".skip").bounding_box()["x"] >= 0  # type: ignore[index]
    seen.page.keyboard.press("Enter")
    assert seen.page.evaluate("document.activeElement.id") == "content"


def test_an_operator_pauses_a_run_and_is_asked_before_a_stop(seen: Seen, store: Store) -> None:
    name = tuned(store, space(), 1, name="operated").run.name
    with serving(store, people(operator="operator-9876543210")) as address:
        page = seen.page
        page.goto(f"{address}/run?run={name}")
        page.get_by_role("link", name="Log in as operator").click()
        page.get_by_label("Token").fill("operator-9876543210")
        page.get_by_role("button", name="Log in").click()
        page.goto(f"{address}/run?run={name}")
        page.get_by_label("Reason").fill("lunch")
        assert Axe().run(page).violations_count == 0
        page.get_by_role("button", name="Pause").click()
        page.get_by_text("lunch").first.wait_for()
        assert page.locator(".status").first.inner_text() == "paused"
        store.resume(name, "owner")
        page.get_by_role("button", name="Pause").wait_for()  # without a reload
        page.get_by_role("button", name="Stop...").click()
        page.get_by_text("This ends the run for good").wait_for()
        assert Axe().run(page).violations_count == 0
        assert store.run(name).status is RunStatus.RUNNING
        page.get_by_role("button", name=f"Stop {name} for good").click()
        page.get_by_text("stopped", exact=True).wait_for()
    assert seen.complaints == []


def test_the_report_fits_its_window(seen: Seen, played: Stage) -> None:
    html = page(report(played.store, played.now()))
    for width in (PHONE[0], 1100):
        seen.page.set_viewport_size({"width": width, "height": 900})
        seen.page.set_content(html)
        found = Axe().run(seen.page)
        assert found.violations_count == 0, found.generate_report()
        assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tables = seen.page.locator(".wide:has(table)")
    assert tables.count() >= 5
    for table in tables.all():
        assert table.evaluate("table => table.scrollWidth <= table.clientWidth")
    assert seen.complaints == []
