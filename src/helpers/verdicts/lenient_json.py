"""Read an object from text that is almost JSON, with a few repairs that each leave one meaning only.

Repaired are: a trailing comma, comments, Python's literals, quotes of other kinds, quotation marks inside a
string, invalid escapes, raw line breaks in strings, keys without quotes, a missing comma before a quoted key,
a plus sign, a trailing dot, full-width punctuation and digits. A fraction such as 4/5 becomes the text "4/5".
Anything else (ranges, units, sums, words) makes the object unreadable; no value is ever guessed or shortened.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple

__all__ = ["START", "Found", "number", "plain", "read", "snake"]

_OBJECT = json.JSONDecoder(object_pairs_hook=tuple)  # pairs, since a dict would hide a key that comes twice
# A brace starts an object only when a key, a comment or nothing follows: prose and LaTeX have braces too.
START = re.compile(r"""\{(?=\s*+(?:["'}]|//|/\*|\#|[A-Za-z_][\w .-]{0,80}:|\Z))""")
_KEY = r"""(?:"[^"\n]{0,80}"|'[^'\n]{0,80}'|[A-Za-z_][\w.-]{0,80}+)\s*+:"""
_NEXT_KEY = re.compile(_KEY)
_BARE_KEY = re.compile(r"[A-Za-z_][\w.-]{0,80}+(?=\s*+:)")
_SKIP = re.compile(r"(?:\s++|//[^\n]*+|\#[^\n]*+|/\*.*?\*/)*+", re.DOTALL)
_NUMBER = re.compile(
    r"([+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)(\s*+/\s*+[0-9.]++)?"
    r"(?![\w.%*+()~-]|/(?![/*]))"
)
_WORD = re.compile(r"-?[A-Za-z]{1,12}+(?!\w)")
_WORDS = {
    "true": "true", "True": "true", "false": "false", "False": "false", "null": "null", "None": "null",
    "undefined": "null", "NaN": "NaN", "nan": "NaN", "Infinity": "Infinity", "inf": "Infinity",
    "-Infinity": "-Infinity", "-inf": "-Infinity",
}  # fmt: skip
_QUOTES = {quote: re.compile(rf"\\.|{quote}", re.DOTALL) for quote in "\"'"}
# Where a quote may end a value: anywhere else it is a quotation mark inside the string.
_VALUE_ENDS = {
    "}": re.compile(rf"\s*+(?:\}}|//|/\*|\#|,\s*+(?:\}}|//|/\*|\#|{_KEY}))"),
    "]": re.compile(r"\s*+[\],]"),
}
_RATING = re.compile(
    r"([+-]?[0-9]++(?:\.[0-9]*+)?(?:e[+-]?[0-9]{1,3})?|[+-]?[0-9]++,[0-9]{1,2})"
    r"\s*(?:(?:/|out of|of)\s*([0-9]{1,3})(?:[.,]0{1,2})?)?"
    r"\s*(?:\((?:[^()0-9]{0,80}|(?:out of|/)\s*([0-9]{1,3}))\))?\.?",
    re.IGNORECASE,
)
_UNSAFE = re.compile(r"""\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|["\\\x00-\x1f]""")
# Every sign maps to one sign, so that offsets in a text and in its plain form are the same.
_PLAIN = str.maketrans(
    {wide: chr(wide - 0xFEE0) for wide in range(0xFF01, 0xFF5F)}
    | dict.fromkeys((0x3000, 0xFEFF, 0x200B), " ")
    | dict.fromkeys(map(ord, "“”„‟"), '"')
    | dict.fromkeys(map(ord, "‘’"), "'")
    | {0x2212: "-"}
)


class Found(NamedTuple):
    """An object in a text, as a tuple of (key, value) pairs; arrays are lists.

    `unclosed` means that the text ends inside it; it then has a value only if nothing but closing brackets
    is missing. `broken` means that it cannot be read; `end` is where to go on.
    """

    kind: Literal["strict", "repaired", "unclosed", "broken"]
    value: Any
    end: int


def plain(text: str) -> str:
    """Return the text with full-width signs, curly quotes and odd spaces as ASCII, sign by sign.

    >>> plain("“score”：４．５")
    '"score":4.5'
    """
    return text if text.isascii() else text.translate(_PLAIN)


def read(text: str, start: int, flat: str | None = None) -> Found:
    """Read the object that starts at `start`; `flat` is `plain(text)` when it is at hand.

    >>> read('{"a": 1}', 0)
    Found(kind='strict', value=(('a', 1),), end=8)
    >>> read("{'a': +1., b: True,}", 0).value
    (('a', 1.0), ('b', True))
    >>> read('{"a": 1, "b": [2', 0)
    Found(kind='unclosed', value=(('a', 1), ('b', [2])), end=16)
    """
    try:
        return Found("strict", *_OBJECT.raw_decode(text, start))
    except (ValueError, RecursionError):
        return _repair(plain(text) if flat is None else flat, start)


def number(value: object, maximum: int) -> float | int | None:
    """Read the one finite number that a value states on a scale with this maximum, None if it states none.

    >>> [number(value, 5) for value in (4, "4,5", "4/5", "4 (good)", "4 out of 5")]
    [4, 4.5, 4.0, 4.0, 4.0]
    >>> [number(value, 5) for value in (True, None, "8/10", "3-4", "90%", "1,000", "four", float("nan"))]
    [None, None, None, None, None, None, None, None]
    """
    if isinstance(value, str) and len(value) < 200:
        rating = _RATING.fullmatch(plain(value).strip(" \t\n*`'\""))
        scales = {rating[2], rating[3]} - {None, str(maximum)} if rating else {"none"}
        value = float(rating[1].replace(",", ".")) if rating and not scales else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None


@lru_cache(maxsize=512)
def snake(key: str) -> str:
    """Return a key in lower case with underscores, empty if it is longer than any key of ours.

    >>> snake("Overall Score"), snake("overall-score"), snake("overallScore")
    ('overall_score', 'overall_score', 'overall_score')
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key) if len(key) < 80 else ""
    return re.sub(r"[\W_]+", "_", words).strip("_").lower()


def _repair(text: str, start: int) -> Found:
    draft = _Draft(text, start)
    while _step(draft):
        if not draft.owed:
            return _strict("repaired", "".join(draft.out), draft.position, text, start)
    if draft.position >= len(text) or text.startswith("```", draft.position):
        owed = "".join(reversed(draft.owed)) if draft.expects == "next" else "?"
        return _strict("unclosed", text[start : draft.position] + owed, draft.position, text, start)
    return _broken(text, start)


def _strict(kind: Literal["repaired", "unclosed"], source: str, end: int, text: str, start: int) -> Found:
    try:
        return Found(kind, _OBJECT.decode(source), end)
    except (ValueError, RecursionError):
        return Found(kind, None, end) if kind == "unclosed" else _broken(text, start)


def _broken(text: str, start: int) -> Found:
    depth = 0
    for brace in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return Found("broken", None, brace.end())
    return Found("unclosed", None, len(text))


@dataclass(slots=True)
class _Draft:
    """Strict JSON on the way: what is read, what is written, which closing brackets are still owed."""

    text: str
    position: int
    out: list[str] = field(default_factory=list)
    owed: list[str] = field(default_factory=list)
    expects: Literal["key", "colon", "value", "next"] = "value"

    def take(self, length: int, written: str, expects: Literal["key", "colon", "value", "next"]) -> bool:
        self.position += length
        self.out.append(written)
        self.expects = expects
        return True


def _step(draft: _Draft) -> bool:
    """Copy one token, repaired; False where the text ends or is not understood."""
    draft.position = skipped.end() if (skipped := _SKIP.match(draft.text, draft.position)) else draft.position
    sign = draft.text[draft.position : draft.position + 1]
    if sign in ("{", "[") and draft.expects == "value":
        draft.owed.append("}" if sign == "{" else "]")
        return draft.take(1, sign, "key" if sign == "{" else "value")
    if sign in ("}", "]"):
        return _close(draft, sign)
    if sign == "," and draft.expects == "next":
        return draft.take(1, sign, "key" if draft.owed[-1] == "}" else "value")
    if sign == ":" and draft.expects == "colon":
        return draft.take(1, sign, "value")
    if sign in ('"', "'"):
        return _string(draft, sign)
    return _bare(draft) if sign else False


def _close(draft: _Draft, sign: str) -> bool:
    if sign != draft.owed[-1] or (draft.expects != "next" and draft.out[-1] not in (",", "{", "[")):
        return False
    if draft.out[-1] == ",":
        draft.out.pop()
    draft.owed.pop()
    return draft.take(1, sign, "next")


def _string(draft: _Draft, quote: str) -> bool:
    if draft.expects == "next" and draft.owed[-1] == "}" and _NEXT_KEY.match(draft.text, draft.position):
        draft.take(0, ",", "key")
    if draft.expects not in ("key", "value"):
        return False
    begin, is_key = draft.position + 1, draft.expects == "key"
    for mark in _QUOTES[quote].finditer(draft.text, begin):
        if mark[0] == quote and (is_key or _VALUE_ENDS[draft.owed[-1]].match(draft.text, mark.end())):
            written = f'"{_UNSAFE.sub(_escaped, draft.text[begin : mark.start()])}"'
            return draft.take(mark.end() - begin + 1, written, "colon" if is_key else "next")
    draft.position = len(draft.text)
    return False


def _escaped(found: re.Match[str]) -> str:
    sign = found[0]
    if len(sign) > 1:
        return sign
    return f"\\{sign}" if sign in '"\\' else f"\\u{ord(sign):04x}"


def _bare(draft: _Draft) -> bool:
    text, position = draft.text, draft.position
    if draft.expects == "key" and (key := _BARE_KEY.match(text, position)):
        return draft.take(len(key[0]), f'"{key[0]}"', "colon")
    if draft.expects == "value" and (number := _NUMBER.match(text, position)):
        written = f'"{number[0]}"' if number[2] else json.dumps(float(number[1]))
        return draft.take(len(number[0]), written, "next")
    word = _WORD.match(text, position) if draft.expects == "value" else None
    return draft.take(len(word[0]), _WORDS[word[0]], "next") if word and word[0] in _WORDS else False
