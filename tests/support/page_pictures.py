"""`make pictures`: what docs/page.md shows of the run of `owned`. Needs Chromium.

The page is drawn as a browser shows it before anybody scrolls, `status` as a terminal does.
"""

import re
import shutil
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from asking import Store
from owned import owned
from playwright.sync_api import Page, sync_playwright
from screen import Screen, console_of
from served import serving

from spsa.db.migrate import upgrade
from spsa.db.tables import Run
from spsa.report.alarms import with_alarms
from spsa.report.screen import screen
from spsa.report.status import status

PAGE = Path(__file__).parents[2] / "docs" / "page.md"
BLOCK = re.compile(r"```\n((?:run rook|STATUS).*?)\n```", re.DOTALL)
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
SIZES = {"page": (1280, 800), "phone": (360, 640)}


def screen_of(store: Store, run: Run) -> str:
    """What `status` shows on a terminal of 80 columns and 24 lines."""
    terminal = Screen(80, 24)
    console = console_of(terminal)
    console.print(screen(with_alarms(store, status(store, run)), console))
    return "\n".join(line.rstrip() for line in terminal.everything.rstrip().splitlines())


_FEWER_COLOURS = """async (address) => {
    const picture = new Image();
    picture.src = address;
    await picture.decode();
    const canvas = new OffscreenCanvas(picture.width, picture.height);
    const context = canvas.getContext('2d');
    context.drawImage(picture, 0, 0);
    const pixels = context.getImageData(0, 0, picture.width, picture.height);
    pixels.data.forEach((level, i) => { pixels.data[i] = 51 * Math.round(level / 51); });
    const flat = document.createElement('canvas');
    [flat.width, flat.height] = [picture.width, picture.height];
    flat.getContext('2d').putImageData(pixels, 0, 0);
    return flat.toDataURL('image/png');
}"""


def smaller(page: Page, png: bytes) -> bytes:
    """A picture of six levels a colour, with which PNG needs half the bytes."""
    page.goto("about:blank")
    address = "data:image/png;base64," + b64encode(png).decode()
    return b64decode(page.evaluate(_FEWER_COLOURS, address).partition(",")[2])


@contextmanager
def shown(address: str, size: tuple[int, int]) -> Iterator[Page]:
    """The page of the newest run in a window of this size, with its figures."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-lcd-text"]
        )
        view = {"width": size[0], "height": size[1]}
        seen = browser.new_page(viewport=view, color_scheme="light")  # type: ignore[arg-type]
        seen.goto(f"{address}/run")
        seen.locator("[data-figure=elo].js-plotly-plot").wait_for()
        yield seen
        browser.close()


def draw(folder: Path) -> None:
    """Write each picture."""
    with tempfile.TemporaryDirectory() as place:
        url = f"sqlite:///{place}/spsa.db"
        upgrade(url)
        with Store(url, durable=False) as store:
            told = screen_of(store, owned(store).now())
            text = PAGE.read_text(encoding="utf-8")
            PAGE.write_text(
                BLOCK.sub(lambda _: f"```\n{told}\n```", text, count=1), encoding="utf-8"
            )
            with serving(store) as address:
                for name, size in SIZES.items():
                    with shown(address, size) as page:
                        (folder / f"{name}.png").write_bytes(smaller(page, page.screenshot()))


if __name__ == "__main__":
    draw(PICTURES)
