"""What a demo leaves to look at: its report, and a picture."""

from pathlib import Path

from rich.console import Console

from spsa.config import load_config
from spsa.db.store import open_store
from spsa.report.drawing import Kind
from spsa.report.files import write_whole
from spsa.report.page import WITHOUT_PICTURES, page
from spsa.report.pictures import can_draw, chosen, drawn
from spsa.report.summary import report


def leave_report(folder: Path, run: str, console: Console) -> None:
    """Write report.html and run.png into the demo's folder, and say where they are."""
    with open_store(load_config(folder / "config.toml", {}).database_url) as store:
        found = report(store, store.run(run))
    write_whole(folder / "report.html", page(found).encode())
    console.print(f"\nthe report, to open in a browser or to send: {folder / 'report.html'}")
    if not can_draw():
        console.print(WITHOUT_PICTURES)
        return
    paths = chosen(found.history.parameters)
    write_whole(folder / "run.png", drawn(found.history, list(Kind), "png", paths=paths))
    console.print(f"the same run as a picture: {folder / 'run.png'}")
