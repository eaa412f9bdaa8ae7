"""Equipment: where a piece of it is named, and what cannot do its work.

A phrase is a device of the closed list `data/equipment.csv` with the words that describe it. All mentions of
one device in a text are one entity, so that the equipment list and the steps stay in agreement. What replaces
it comes from `data/equipment_swaps.csv` by the operation that the device is for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from helpers import keyed

from . import formulas, names
from .alternation import either
from .composition import rows
from .edits import Edit, cuts

__all__ = ["Mention", "find", "propose"]

KIND = "equipment_substitution"


class Mention(NamedTuple):
    """A device at `text[start:end]`; `article` is "a", "an" or "" as it stands right before."""

    start: int
    end: int
    device: str
    plural: bool
    article: str


class _Swap(NamedTuple):
    instead: str
    plural: str
    after_an: str
    task: str


_DEVICES = [row for row in rows("equipment") if row["operation"] != "describes"]
_BY_NAME = {row[form].lower(): row for row in reversed(_DEVICES) for form in ("plural", "name") if row[form]}
_OPERATION = {row["device"]: row["operation"] for row in reversed(_DEVICES)}
_SWAPS: dict[str, list[_Swap]] = {}
for _row in rows("equipment_swaps"):
    _swap = _Swap(_row["instead"], _row["plural"], _row["after_an"], _row["task"])
    _SWAPS.setdefault(_row["operation"], []).append(_swap)


_DESCRIBING = {row["name"].lower() for row in rows("equipment") if row["operation"] == "describes"}
_DESCRIBES = either(_DESCRIBING)
# A filter press is no press: these names are whole although they start with a word that describes.
_WHOLE = either(
    name for name in _BY_NAME if name.partition(" ")[0] in _DESCRIBING and name.partition(" ")[2] in _BY_NAME
)
_PHRASE = re.compile(
    rf"(?<![\w/·-])(?P<words>(?:(?!{_WHOLE}(?![\w-])){_DESCRIBES}[ -])*)(?P<name>{either(_BY_NAME)})(?![\w-])"
)
_ARTICLE = re.compile(r"\b(an?)\s$", re.IGNORECASE)
# "filter", "press" and "centrifuge" are verbs too: the noun stands after an article or a preposition, with
# adjectives and numbers between, or is an item of a list.
_NOUN = re.compile(
    r"\b(?:an?|the|this|that|each|our|using|with|by|in|into|inside|through|from|of|via|on)\s"
    r"(?:(?!(?:and|or|then|to|with)\b)(?:[^\s,;:.()]|\.(?=\d))+\s){0,4}$",
    re.IGNORECASE,
)
_ITEM = re.compile(r"(?:^|\n)\s*[-*•]\s*$")
_SMALL_ITEM = re.compile(r"\n\s*[-*•]\s+[a-z]")
_ITEM_END = re.compile(r"\s*(?:$|[\n,;(])")
_OBJECT = re.compile(r"\s+(?:the|an?|it|them|this|that|these|all)\b", re.IGNORECASE)
_TREATED = re.compile(
    r"[\s-]+(?:dried|dry|drying|cooled|cooling|milled|milling|treated|treatment|temperature|cakes?|aid"
    r"|tubes?|probe|slides?|walls?|doors?|lids?|racks?|chambers?|controller|stirrer|sonicator|reactors?|vessels?|program|atmosphere)\b",
    re.I,
)
# Büchner, Schlenk, Ar-filled: their capital says nothing about where the phrase stands.
_PROPER = {re.split(r"[\s-]", row["name"])[0] for row in rows("equipment") if row["name"][0].isupper()}
_OPENING = re.compile(r"(?:^|\n|[.:!?]\s)\W*(?:\d+[.)]\s*)?$")
_COOLING = re.compile(
    r"\b(?:cool|quench|chill|rins|wash|float)\w*\s+(?:\S+\s+){0,6}(?:in|inside|with|within|into)\s+(?:\S+\s+){0,2}$",
    re.I,
)


@lru_cache(maxsize=64)
def find(text: str) -> tuple[Mention, ...]:
    """Return the mentions of equipment in a text, whole phrases in order.

    >>> text = "Seal a Teflon-lined stainless-steel autoclave and dry the oven-dried filter cake in an oven."
    >>> [text[m.start : m.end] for m in find(text)]
    ['Teflon-lined stainless-steel autoclave', 'oven']
    """
    chemical = [*formulas.spans(text), *names.spans(text)]
    mentions = []
    low = text.lower()
    for match in _PHRASE.finditer(low if len(low) == len(text) else text):
        row = _BY_NAME[match["name"]]
        if _is_noun(text, match, row) and not cuts(chemical, match.start(), match.end()):
            article = _ARTICLE.search(text, max(0, match.start() - 4), match.start())
            plural = match["name"] == row["plural"].lower()
            mentions.append(Mention(*match.span(), row["device"], plural, article[1].lower() if article else ""))
    return tuple(mentions)


def _is_noun(text: str, match: re.Match[str], row: Mapping[str, str]) -> bool:
    start, end = match.span()
    other = row["not_after"] and re.search(rf"(?:{row['not_after']})\s+$", text[max(0, start - 20) : start], re.I)
    if other or _TREATED.match(text, end):
        return False
    if row["use"] != "noun":
        return row["use"] == "" or match["words"] != ""
    before = text[max(0, start - 60) : start]
    if _ITEM.search(before):
        return bool(_ITEM_END.match(text, end) or (match["words"] and not _OBJECT.match(text, end)))
    return bool(_NOUN.search(before)) and not _OBJECT.match(text, end)


def propose(text: str, *, seed: int, sample_id: str, target: str = "") -> list[Edit]:
    """Return an edit for every mention, the same replacement for all mentions of one device.

    >>> propose("Boil water in a kettle.", seed=1, sample_id="a")[0].why.endswith(" cannot heat anything")
    True
    """
    edits = []
    lowered = text.lower()
    for device in dict.fromkeys(mention.device for mention in find(text)):
        mentions = [mention for mention in find(text) if mention.device == device]
        # "left to cool in the furnace" alone asks for nothing that a refrigerator could not do.
        if all(_COOLING.search(text, max(0, m.start - 80), m.start) for m in mentions):
            continue
        options = _SWAPS[_OPERATION[device]]
        options = [o for o in options if o.instead.lower() not in lowered] or options
        swap = options[keyed.word(seed, sample_id, KIND, device) % len(options)]
        edits += [_edit(text, mention, swap) for mention in mentions]
    return sorted(edits)


def _edit(text: str, mention: Mention, swap: _Swap) -> Edit:
    plain = swap.plural if mention.plural else swap.after_an if mention.article == "an" else swap.instead
    why = f"{plain if mention.plural else _with_article(plain)} cannot {swap.task}"
    old, new = text[mention.start : mention.end], _cased(text, mention, plain)
    return Edit(mention.start, mention.end, old, new, KIND, f"equipment {mention.device}", why)


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"


def _cased(text: str, mention: Mention, new: str) -> str:
    """Give `new` the capitals of the mention: all, every word's, the first letter's or none."""
    old = text[mention.start : mention.end]
    parts = re.split(r"[\s-]", old)
    if old.isupper() and len(old) > 3:
        return new.upper()
    if len(parts) > 1 and all(part[0].isupper() for part in parts):
        return " ".join(word[0].upper() + word[1:] for word in new.split(" "))
    before = text[max(0, mention.start - 12) : mention.start]
    small = _ITEM.search(before) and _SMALL_ITEM.search(text)
    opens = parts[0] not in _PROPER or (_OPENING.search(before) and not small)
    return new[0].upper() + new[1:] if old[0].isupper() and opens else new
