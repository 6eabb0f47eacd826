"""The pages in headless Chromium: what is drawn, what a keyboard reaches, what axe-core finds."""

import os
import re
import shutil
from itertools import product
from pathlib import Path

import pytest
from asking import Store
from axe_playwright_python.sync_playwright import Axe
from builders import stage
from golden import compare
from owned import owned
from playwright.sync_api import expect, sync_playwright
from served import OPERATOR, people, serving, space

from spsa.lifecycle import RunStatus
from spsa.report.html import page
from spsa.report.report import history, report
from spsa.report.table import estimate

pytestmark = pytest.mark.slow

PAGES = (
    "/",
    "/run",
    "/parameters?sort=steps+moved",
    "/parameter?name=margin",
    "/workers?sort=name",
    "/worker?name=machine-1",
    "/iterations",
    "/iteration?number=8",
    "/events",
    "/compare?with=other",
    "/login",
    "/nothing",
)
PHONE, SCREEN = (360, 780), (1280, 800)
THEMES = ("light", "dark")
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


@pytest.fixture(scope="module")
def chromium():
    program = shutil.which("chromium")
    if program is None:
        reason = "no Chromium: apt-get install chromium"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def shared_database_url(sqlite_template, tmp_path_factory):
    return f"sqlite:///{shutil.copy(sqlite_template, tmp_path_factory.mktemp('seen') / 'x.db')}"


@pytest.fixture(scope="module")
def other(shared_store):
    return stage(shared_store, space(), 1, name="other")


@pytest.fixture(scope="module")
def address(other, played):
    with serving(played.store) as address:
        yield address


class Seen:
    """A page, and everything it complains about."""

    def __init__(self, page):
        self.page = page
        self.complaints: list[str] = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", self._refuse)

    def _hear(self, message):
        if message.type in ("error", "warning") and "404" not in message.text:
            self.complaints.append(message.text)

    def _refuse(self, dialog):
        self.complaints.append(f"a dialog: {dialog.message}")
        dialog.dismiss()


@pytest.fixture
def seen(chromium, request):
    scheme, (width, height) = getattr(request, "param", ("light", SCREEN))
    context = chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": height})
    context.set_default_timeout(90_000)  # the first answer of a busy machine
    yield Seen(context.new_page())
    context.close()


@pytest.mark.parametrize("seen", [*product(THEMES, (PHONE, SCREEN))], ids=str, indirect=True)
def test_every_page_is_well_made(seen, address):
    for path in PAGES:
        seen.page.goto(address + path)
        if (shut := seen.page.locator("#rest:not([open]) > summary")).count():
            assert Axe().run(seen.page).violations_count == 0
            height = seen.page.evaluate("document.documentElement.scrollHeight")
            assert seen.page.viewport_size == {"width": 360, "height": 780} and height <= 2 * 780
            shut.click()
        if seen.page.locator("[data-figures]").count():
            seen.page.locator(".js-plotly-plot").first.wait_for()
        found = Axe().run(seen.page)
        assert found.violations_count == 0, f"{path}: {found.generate_report()}"
        assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        assert seen.page.locator("img[src=x]").count() == 0
    assert seen.complaints == []


def drawn(seen, name, trace):
    """The values that Plotly has of a series, as soon as the live page has drawn it."""
    found: dict[str, object] = seen.page.wait_for_function(
        """([place, name]) => {
          const series = document.querySelector(place)?.data?.find((one) => one.name === name);
          return series && (({x, y, line}) => ({x, y, line}))(series);
        }""",
        arg=[f"[data-figure={name}].js-plotly-plot", trace],
    ).json_value()
    return found


def test_the_strength_curve_is_drawn_with_its_band(seen, address, played):
    played.validate(games=40, opened_on=3)
    seen.page.goto(f"{address}/run")
    found = history(played.store, played.now())
    assert found.measured.curve is not None
    match, curve = estimate(found.measured.matches[0].tally), found.measured.curve
    assert match is not None
    line = drawn(seen, "elo", "all matches together")
    assert line["y"] == pytest.approx(list(curve.elo))
    assert line["line"]["color"] == "#1f5fa8"
    matches = drawn(seen, "elo", "a match, with its 95% interval")
    assert matches["y"][0] == pytest.approx(match.value)
    band = seen.page.locator("[data-figure=elo] .fills path").first
    band.wait_for()  # the figure is drawn after it has its values
    box = band.bounding_box()
    assert box is not None and box["width"] > 100 and box["height"] > 20
    assert seen.page.locator("[data-figure=elo] .zerolinelayer path").count()
    told = f"{curve.elo[2]:+.1f} ± {curve.errors[2]:.1f}"
    expect(seen.page.locator("#measured")).to_contain_text(told, timeout=90_000)
    assert seen.complaints == []


def test_a_name_is_highlighted_in_both_figures(seen, address):
    seen.page.goto(f"{address}/run")
    drawn(seen, "parameters", "margin")
    drawn(seen, "moved", "now")
    seen.page.get_by_label("Highlight").fill("MARG")
    opacities = seen.page.locator("[data-figure=parameters]").evaluate(
        "(place) => Object.fromEntries(place.data.map((one) => [one.name, one.opacity]))"
    )
    assert opacities.pop("margin") == 1 and set(opacities.values()) == {0.12}
    assert sorted(
        seen.page.locator("[data-figure=moved]").evaluate("(p) => p.data[0].marker.opacity")
    ) == [0.12, 1]


def test_a_bad_machine_is_named_on_the_first_screen_and_an_event_is_read_on_a_phone(
    seen, sqlite_template, tmp_path
):
    url = f"sqlite:///{shutil.copy(sqlite_template, tmp_path / 'x.db')}"
    with Store(url, durable=False) as store, serving(store) as address:
        owned(store)
        store.pause("rook", "owner@home", "attic-1 spoils games")
        store.resume("rook", "owner@home")
        seen.page.goto(f"{address}/run?run=rook")
        expect(seen.page.locator(".alarms", has_text="attic-1")).to_be_in_viewport(ratio=1)
        seen.page.locator("[data-figure=elo] .yzl").wait_for(state="attached")
        pictured(seen.page, "page.png")
        seen.page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        seen.page.reload()
        expect(seen.page.get_by_text("How the parameters moved")).to_be_hidden()
        pictured(seen.page, "phone.png")
        seen.page.goto(f"{address}/events?run=rook")
        box = seen.page.get_by_text("attic-1 spoils games").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE[0]


def pictured(page, name):
    """The words in a picture of the guide are in a file; `GOLDEN=write` makes both anew."""
    words = "\n\n".join(map(page.inner_text, ("#answer", "#alarms")))
    compare(Path(__file__).with_name("pictured.txt"), re.sub("left: .* hour", "left: -", words))
    if os.environ.get("GOLDEN") == "write":
        page.screenshot(path=PICTURES / name)


def test_without_scripts_the_answer_and_the_tables_are_there(chromium, address):
    context = chromium.new_context(java_script_enabled=False)
    seen = context.new_page()
    seen.goto(f"{address}/run")
    assert "Elo" in seen.locator("#measured").inner_text()
    assert seen.get_by_text("The figure is drawn by a script").first.is_visible()
    assert seen.locator("#workers tbody tr").count() >= 2
    context.close()


def test_a_page_follows_the_run_without_a_reload(seen, address, played):
    seen.page.goto(f"{address}/run")
    seen.page.evaluate("window.isTheSame = true")
    seen.page.locator("#settings-all > summary").click()
    applied = played.now().applied
    drawn(seen, "parameters", "margin")
    played.play(10.0)
    played.apply()
    seen.page.get_by_text(f"{applied + 1} of 10 iterations").wait_for()
    expect(seen.page.locator("[data-figure=parameters]")).to_be_visible()
    seen.page.wait_for_function(
        "(n) => document.querySelector('[data-figure=parameters]').data[0].x.length === n",
        arg=applied + 2,
        timeout=90_000,
    )
    assert seen.page.evaluate("window.isTheSame") is True
    assert seen.page.locator("#settings-all[open]").count() == 1
    assert seen.page.evaluate("document.activeElement.localName") == "summary"
    assert seen.complaints == []


def test_an_operator_pauses_a_run_and_is_asked_before_a_stop(seen, played):
    store, name = played.store, "operated"
    stage(store, space(), 1, name=name)
    with serving(store, people(operator=OPERATOR)) as address:
        page = seen.page
        page.goto(f"{address}/run?run={name}")
        page.get_by_role("link", name="Log in as operator").click()
        page.get_by_label("Token").fill(OPERATOR)
        page.get_by_role("button", name="Log in").click()
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
        page.locator("#answer").get_by_text("stopped", exact=True).wait_for()
    assert seen.complaints == []


def test_the_report_is_drawn_and_fits_its_window(seen, played, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(page(report(played.store, played.now())))
    for width in (PHONE[0], 1100):
        seen.page.set_viewport_size({"width": width, "height": 900})
        seen.page.goto(file.as_uri())
        drawn(seen, "elo", "a match, with its 95% interval")
        found = Axe().run(seen.page)
        assert found.violations_count == 0, found.generate_report()
        assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert seen.page.locator("table").count() >= 5
    assert seen.complaints == []
