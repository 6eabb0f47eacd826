"""An SVG of matplotlib as a part of an HTML page that allows no style and no script of its own."""

import re
from xml.etree import ElementTree

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_HREF = f"{{{_XLINK}}}href"
_DROPPED = {f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"}


def inline_svg(svg: bytes, name: str, label: str) -> str:
    """The element `<svg>`; `name` begins all its ids, `label` is read out in its place.

    What stands in `style="..."` becomes attributes, which say the same and are no inline styles.
    """
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        for child in [child for child in element if child.tag in _DROPPED]:
            element.remove(child)
        _rename(element, name)
        _restyle(element)
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    root.attrib |= {"role": "img", "aria-label": label, "stroke-linejoin": "round"}
    return ElementTree.tostring(root, encoding="unicode")


def _rename(element: ElementTree.Element, name: str) -> None:
    """Several pictures of a page share no id."""
    for key, value in element.attrib.items():
        if key == "id":
            element.set(key, f"{name}-{value}")
        elif key == _HREF:
            element.set(key, value.replace("#", f"#{name}-", 1))
        elif key == "clip-path":
            element.set(key, re.sub(r"#", f"#{name}-", value, count=1))


def _restyle(element: ElementTree.Element) -> None:
    for style in element.attrib.pop("style", "").split(";"):
        key, _, value = (part.strip() for part in style.partition(":"))
        if key == "font":  # how older versions write both
            size, _, family = value.partition(" ")
            element.attrib |= {"font-size": size, "font-family": family}
        elif key:
            element.set(key, value)
