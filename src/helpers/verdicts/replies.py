"""What a model's reply holds outside its reasoning blocks: objects in their order, and the visible text.

Reasoning is what stands between `<think>` tags and their kin, in any case and with attributes, and everything
before a closing tag that was never opened. A tag inside a string of an object belongs to the data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from helpers.verdicts import lenient_json

__all__ = ["Object", "Reply", "has_tag", "read"]

_THOUGHT = r"(?i:(?:seed:)?(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|analysis|scratch_?pad|rationale)\b)"
_SIGN = re.compile(r"[{<\[◁]")  # what an object or a tag begins with
_OPEN = re.compile(
    rf"<\s{{0,3}}{_THOUGHT}[^<>]{{0,200}}(?<!/)>|\[(?i:think)\]|◁think▷|<\|begin_of_thought\|>"
    r"|<\|channel\|>\s{0,3}(?:analysis|commentary)"
)
_CLOSE = re.compile(
    rf"<\s{{0,3}}/\s{{0,3}}{_THOUGHT}[^<>]{{0,200}}>|\[/(?i:think)\]|◁/think▷|<\|end_of_thought\|>"
    r"|<\|channel\|>\s{0,3}final\b"
)
_NOTHING_FOLLOWS = re.compile(r"[\s`~]*+\Z")
_PATIENCE = 50  # objects to repair: each error of the json module costs time in the length of the whole text


class Object(NamedTuple):
    """An object as (key, value) pairs with notes on its repair, or, with no pairs, its unreadable source.

    `span` is where it stands in the reply.
    """

    pairs: tuple[tuple[str, Any], ...]
    notes: tuple[str, ...] = ()
    unreadable: str = ""
    span: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class Reply:
    """A reply's objects and text. `unclosed` names what the reply ends inside: object, reasoning or nothing."""

    objects: list[Object] = field(default_factory=list)
    visible: str = ""
    unclosed: str = ""
    ends_with_object: bool = False  # nothing but a fence follows the last one
    given_up: bool = False  # too many objects need repair
    repairs: int = 0


def has_tag(text: str) -> bool:
    """Say whether a reasoning tag occurs anywhere in the text, even inside a string."""
    starts = (sign.start() for sign in _SIGN.finditer(text))
    return any(_OPEN.match(text, start) or _CLOSE.match(text, start) for start in starts)


def read(text: str) -> Reply:
    """Walk through a reply once.

    >>> reply = read('<think>{"a": 1}?</think> So: {"a": 2}')
    >>> reply.objects[0].pairs, reply.visible, reply.ends_with_object
    ((('a', 2),), 'So: {"a": 2}', True)
    """
    flat, reply, visible, position, shown, end = lenient_json.plain(text), Reply(), [], 0, 0, 0
    while sign := _SIGN.search(flat, position):
        start, position = sign.span()
        if lenient_json.START.match(flat, start):
            position = end = _take(reply, text, flat, start)
        elif opening := _OPEN.match(flat, start):
            closing = _CLOSE.search(flat, opening.end())
            visible.append(flat[shown:start])
            reply.unclosed = reply.unclosed if closing else "reasoning"
            position = shown = closing.end() if closing else len(flat)
        elif closing := _CLOSE.match(flat, start):  # never opened, so that all before it was reasoning
            reply, visible, position = Reply(repairs=reply.repairs), [], closing.end()
            shown = position
    reply.visible = "".join([*visible, flat[shown:]]).strip()
    reply.ends_with_object = _NOTHING_FOLLOWS.match(flat, end) is not None
    return reply


def _take(reply: Reply, text: str, flat: str, start: int) -> int:
    """Note the object that starts here; return where to go on."""
    found = lenient_json.read(text, start, flat)
    reply.repairs += found.kind != "strict"
    if reply.repairs > _PATIENCE:
        reply.given_up = True
        return len(flat)
    if found.value is None:
        reply.objects.append(Object((), unreadable=flat[start : found.end], span=(start, found.end)))
    else:
        reply.objects.append(Object(found.value, _notes(found, text, start), span=(start, found.end)))
    if found.kind != "unclosed":
        return found.end
    reply.unclosed = "object"
    # An object dropped in mid-thought: go on at the tag that ends the thought, if there is one.
    closings = [] if found.value else [*_CLOSE.finditer(flat, start)]
    return closings[-1].start() if closings else len(flat)


def _notes(found: lenient_json.Found, text: str, start: int) -> tuple[str, ...]:
    repair = {"repaired": ("syntax",), "unclosed": ("closing bracket",)}.get(found.kind, ())
    before, after = text[max(start - 40, 0) : start].rstrip(), text[found.end : found.end + 40].lstrip()
    return (*repair, "list") if before.endswith("[") or after.startswith("]") else repair
