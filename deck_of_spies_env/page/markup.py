"""Elements of HTML and SVG as trees, so that whatever text goes in comes out escaped."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

Child = Element | str | None
"""What an element can hold; None is left out."""


def tag(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Element:
    """An element with its children in order.

    Args:
        name: of the element.
        children: elements and texts.
        attributes: in Python's spelling: ``class_`` for ``class``, ``aria_label`` for
            ``aria-label``. True is an attribute without a value, False and None are left out.
    """
    element = Element(name)
    for key, value in attributes.items():
        if value is not None and value is not False:
            written = "" if value is True else str(value)
            element.set(key.rstrip("_").replace("_", "-"), written)
    last: Element | None = None
    for child in children:
        if isinstance(child, Element):
            element.append(child)
            last = child
        elif child is not None and last is None:
            element.text = (element.text or "") + child
        elif child is not None and last is not None:
            last.tail = (last.tail or "") + child
    return element


def to_html(element: Element) -> str:
    """An element as HTML; texts of scripts and styles stay as they are."""
    return ElementTree.tostring(element, encoding="unicode", method="html")


def data_island(name: str, data: Any) -> Element:
    """A script element that holds data in JSON, which can't end the element by what it says.

    Raises:
        ValueError: NaN or an infinity among the data.
    """
    written = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    safe = written.replace("<", "\\u003c")
    return tag("script", safe, type="application/json", id=name)
