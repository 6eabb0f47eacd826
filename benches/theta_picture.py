"""Draw the paths of theta in a run: `python -m benches.theta_picture URL RUN PICTURE.svg`.

It is the figure of the page and of `report --html`, which Chromium draws and Plotly writes as SVG.
Needs the test tools (playwright) and `chromium`.
"""

import shutil
import tempfile
from pathlib import Path
from urllib.parse import unquote

import click
from playwright.sync_api import sync_playwright

from spsa.db import Store
from spsa.report.html import page
from spsa.report.report import report

_BACKGROUND = "fill: rgb(0, 0, 0); fill-opacity: 0;", "fill: rgb(255, 255, 255);"
"""Of the whole picture: transparent in Plotly's, and white, which a dark page needs as well."""

_TO_SVG = """async (place) => {
    const name = {format: 'svg', width: 900, height: 420};
    return await Plotly.toImage(place, name);
}"""


def svg_of(html: str, figure: str) -> str:
    """The SVG of a figure of a report, in the light theme."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "report.html"
        file.write_text(html, encoding="utf-8")
        program = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        seen = browser.new_page(color_scheme="light")
        seen.goto(file.as_uri())
        place = seen.locator(f"[data-figure={figure}].js-plotly-plot")
        place.wait_for()
        address: str = place.evaluate(_TO_SVG)
        browser.close()
    return unquote(address.partition(",")[2]).replace(*_BACKGROUND, 1)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("url")
@click.argument("run")
@click.argument("picture", type=click.Path(dir_okay=False, path_type=Path))
def main(url: str, run: str, picture: Path) -> None:
    """Draw the path of theta of a RUN in the database URL."""
    with Store(url) as store:
        html = page(report(store, store.run(run)))
    picture.write_text(svg_of(html, "parameters"), encoding="utf-8")


if __name__ == "__main__":
    main()
