"""Colours that carry meaning differ for the colour-blind, and marks differ from what is behind.

Sight is simulated by the matrices of Machado, Oliveira & Fernandes (2009), "A physiologically-based
model for simulation of color vision deficiency", severity 1.0, on linear RGB. The distance is that
of Oklab (Ottosson 2020), which is even in hue, as that of CIELAB is not for blue; 0.02 is just seen
side by side, and thin lines and words far apart need four times that. Plus and minus and the
pentanomial are told without a colour; the heat strip has Viridis, which is made for this.
"""

import re
from importlib.resources import files
from itertools import combinations, product

import numpy as np
import pytest

LEAST = 0.08
CONTRAST = 3.0  # of graphical marks: WCAG 2.2, 1.4.11; axe looks at words
TOGETHER = (
    ("good", "warn", "bad", "first"),  # status, verdict and alarms
    ("first", "second", "measured"),  # the figure of Elo
    tuple(f"path{i}" for i in range(8)),  # parameters; rules and runs beside one another
)
SIGHTS = {
    "normal": "1 0 0  0 1 0  0 0 1",
    "protanopia": "0.152286 1.052583 -0.204868  0.114503 0.786281 0.099216"
    "  -0.003882 -0.048116 1.051998",
    "deuteranopia": "0.367322 0.860646 -0.227968  0.280085 0.672501 0.047413"
    "  -0.011820 0.042940 0.968881",
    "tritanopia": "1.255528 -0.076749 -0.178779  -0.078411 0.930809 0.147602"
    "  0.004733 0.691367 0.303900",
}
CONES = (
    "0.4122214708 0.5363325363 0.0514459929  0.2119034982 0.6806995451 0.1073969566"
    "  0.0883024619 0.2817188376 0.6299787005"
)
OKLAB = (
    "0.2104542553 0.7936177850 -0.0040720468  1.9779984951 -2.4285922050 0.4505937099"
    "  0.0259040371 0.7827717662 -0.8086757660"
)


def matrix(text):
    return np.array(text.split(), dtype=float).reshape(3, 3)


def themes():
    """The colours of each theme in linear RGB; the dark one changes those of the light one."""
    look = files("spsa.report").joinpath("assets/look.css").read_text(encoding="utf-8")
    told = [re.findall(r"--(\w+): ([^;]+);", block) for block in look.split(":root {")[1:3]]
    for given in (told[0], told[0] + told[1]):
        named = dict(given)
        same = {name: named[value[6:-1]] for name, value in given if value.startswith("var(")}
        yield {name: linear(value) for name, value in (named | same).items() if value[0] == "#"}


def linear(value):
    parts = np.array([int(value[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def light(colour):
    return colour @ [0.2126, 0.7152, 0.0722] + 0.05


@pytest.mark.parametrize("theme", [*themes()], ids=("light", "dark"))
def test_colours_are_told_apart(theme):
    def seen(name, sight):
        cones = matrix(CONES) @ np.clip(matrix(SIGHTS[sight]) @ theme[name], 0, 1)
        return matrix(OKLAB) @ np.cbrt(cones)

    pairs = product(SIGHTS, (pair for group in TOGETHER for pair in combinations(group, 2)))
    distances = {(a, b, s): np.linalg.norm(seen(a, s) - seen(b, s)) for s, (a, b) in pairs}
    assert min(distances.values()) >= LEAST, sorted(distances.items(), key=lambda one: one[1])[:5]
    marks = {name for group in TOGETHER for name in group}
    for mark, behind in product(sorted(marks), ("page", "panel")):
        dark, bright = sorted((light(theme[mark]), light(theme[behind])))
        assert bright / dark >= CONTRAST, (mark, behind)
