"""The picture of a run is the figure of its report, as SVG."""

import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from served import space
from tuned import tuned

from benches.theta_picture import svg_of
from spsa.db import Store
from spsa.report.html import page
from spsa.report.report import report

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="no Chromium"),
]


def test_a_run_is_drawn(sqlite_url: str, tmp_path: Path) -> None:
    with Store(sqlite_url, durable=False) as store:
        html = page(report(store, tuned(store, space(3), 4).now()))
    root = ElementTree.fromstring(svg_of(html, "parameters"))
    assert (root.get("width"), root.get("height")) == ("900", "420")
    text = "".join(root.itertext())
    assert "steps from the start" in text and "margin" in text
