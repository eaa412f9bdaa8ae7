"""Actions: the verbs of a procedure, and each turned into its opposite.

A form counts only where the words around it show a verb: an imperative at the start of a clause, an
infinitive, a passive or a gerund after "by", "after", "before". "Heating rate", "a stirred solution", "dry
ethanol", "under stirring" and "as the solid dries" are no actions of the reader's. `data/verbs.csv` has one
opposite for each verb; a verb without an honest opposite (grind, press, wash, calcine) is not in it, and no
chain of opposites leads back to its start, so that two edits never cancel.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from . import formulas, names
from .alternation import either
from .composition import rows
from .edits import Edit, cuts

__all__ = ["Action", "find", "propose"]

KIND = "action_antonym"


class Action(NamedTuple):
    """A verb at `text[start:end]`: its row of the table and which of its forms it is."""

    start: int
    end: int
    verb: str
    form: str


_VERBS: dict[str, Mapping[str, str]] = {row["base"]: row for row in rows("verbs")}
_FORMS = {row[form]: row["base"] for row in rows("verbs") for form in ("base", "past", "participle", "gerund")}
_UNLESS = {row["base"]: re.compile(rf"[ \t]*+(?:{row['unless']})") for row in rows("verbs") if row["unless"]}
_UNLESS_BEFORE = {row["base"]: re.compile(row["unless_before"]) for row in rows("verbs") if row["unless_before"]}
_FORM = re.compile(rf"(?<![\w-]){either(_FORMS)}(?![\w-])")

_ADVERB = (
    r"(?:(?:\w+ly|then|again|first|next|also|further|now|well|once|twice|together|thereafter|afterwards?|"
    r"overnight|please)\s+)*$"
)
_OPEN = (
    r"(?:^|\n|[.:;!?]\s|\d[.)]\s|\([a-z0-9]{1,3}\)\s|\bstep \w+\b[.:]?\s)[\s\"'“*_•>\[(–—-]*"
    r"|[*_•]\s*|\s[–—-]\s+"
)


def _before(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{pattern}){_ADVERB}", re.IGNORECASE)


_STARTS = _before(_OPEN)
_JOINED = _before(r",\s+|\b(?:and|or|then|but)\s+|&\s+|,?\s+and/or\s+")
_TO = _before(r"(?<!due )(?<!subjected )(?<!exposed )(?<!resistant )(?<!according )(?<!owing )\bto\s+")
_MODAL = _before(r"\b(?:should|must|can|could|may|might|will|would|shall|we|you|let(?:\s+\w+){0,4})\s+")
_AUXILIARY = _before(r"\b(?:was|were|is|are|be|been|being)\s+(?:being\s+)?")
_SUBJECT = _before(r"\b(?:we|I|he|she|they)\s+(?:have\s+|had\s+)?")
_PERFECT = re.compile(r"\b(?:have|had)\s+$", re.IGNORECASE)
_ACTIVE = re.compile(r"\b(?:[Ww]e|I|[Ss]?[Hh]e|[Tt]hey)\b(?!.*\b(?:was|were)\b)[^.;]*$", re.DOTALL)
_MEANS = _before(
    r"\b(?:by|while|whilst|when|before|after|upon|on|during|via|through|following|prior to|followed by|until"
    r"|instead of|started|continued|began)\s+"
)
_ATTRIBUTE = re.compile(
    r"\b(?:the|an?|this|that|these|those|its|each|of|in|into|to|with|from|using|as|under|per|than|has|have|had|freeze|spray"
    r"|air|oven|vacuum|furnace|dry|wet|sun|ball|well)\s+(?:\w+ly\s+|\w+ed,\s+)*$",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"(?:\b(?:not|never|no|without|avoid|avoiding|cannot|nor)|n't)\s+(?:\w+\s+){0,2}$", re.IGNORECASE)
# What may follow a verb, but hardly the noun that an adjective or a noun of the same spelling would need.
_FOLLOWS = re.compile(
    r"\s*(?:$|[.,;:!?)\]\n(<>~≈*_|–—-]|\d)|\s+(?:the|an?|this|that|these|those|it|them|both|all|each|every|in|at|on|to|into|onto"
    r"|with|by|for|from|under|over|through|via|using|until|till|before|after|and|or|then|while|overnight|again"
    r"|together|gently|well|as|between|about|around|once|twice|up to|down to|out|above|below|within|inside|ca"
    r"|\w+ly)\b",
    re.IGNORECASE,
)
_FORMULA = re.compile(r"\s+[A-Z][a-z]?(?:[A-Z\d₀-₉(])")
_PARTICLE = re.compile(r"\s+(?:up|down|off|out)\b(?! to)")
_ORDER = re.compile(
    r"(?!\s+of\b)(?![^.;\n]*?\b(?:was|were|is|are|has|have|had|will|can|should|must)\b)"
    r"[^.;\n]*?\b(?:at|in|for|under|with|over|on|until|to|into|from|using|by|overnight|thoroughly)\b"
)
_STATE = re.compile(
    r"\b(?:keep|kept|stays?|remains?|until|is|are|was|were|a|an|the)\s+\w+\s*(?:,|,?\s*and|or|&)\s*$", re.IGNORECASE
)
_NOUN_AFTER = re.compile(
    r"(?:(?:\s*[,/]\s*|\s+(?:and|or|&)\s+)\w+ing)?\s+(?:of|was|were|is|are|rates?|times?|temperatures?|steps?|process(?:es)?|procedures?|stages?|ramps?|baths?"
    r"|agents?|ovens?|bars?|speeds?|plates?|elements?|zones?|chambers?|media|medium|methods?|cycles?|programs?"
    r"|curves?|conditions?|treatments?|profiles?|tanks?|mantles?|points?|blocks?|tapes?|tubes?|jackets?|rods?|power"
    r"|ratios?|water|air|effects?|behaviou?rs?|capacity|device|apparatus|operations?)\b"
)


@lru_cache(maxsize=64)
def find(text: str) -> tuple[Action, ...]:
    """Return the actions of a text that have an opposite, in order.

    >>> text = "Heat the dry powder, stir at a heating rate of 5 K/min and cool it; it was dried by heating in air."
    >>> [text[a.start : a.end] for a in find(text)]
    ['Heat', 'stir', 'cool', 'dried', 'heating']
    """
    chemical = [*formulas.spans(text), *names.spans(text)]
    low = text.lower()
    actions = []
    for match in _FORM.finditer(low if len(low) == len(text) else text):
        start, end = match.span()
        row = _VERBS[_FORMS[match[0]]]
        before, after = text[max(0, start - 120) : start], text[end : end + 120]
        form = _form(match[0], row, before, after) if _allowed(row["base"], before, after) else ""
        if form and not cuts(chemical, start, end):
            actions.append(Action(start, end, row["base"], form))
    return tuple(actions)


def propose(text: str, *, seed: int, sample_id: str, target: str = "") -> list[Edit]:
    """Return an edit for every action; a verb has one opposite, so nothing is drawn.

    >>> [edit.new for edit in propose("Stir, then COOL; dried in air.", seed=0, sample_id="a")]
    ['Settle', 'WARM', 'wetted']
    """
    edits = []
    for action in find(text):
        row = _VERBS[action.verb]
        old = text[action.start : action.end]
        prefix = "" if action.form == "base" else f"_{action.form}"
        new = _cased(old, row[f"opposite{prefix}"])
        edits.append(Edit(action.start, action.end, old, new, KIND, "", row["why"]))
    return edits


def _allowed(verb: str, before: str, after: str) -> bool:
    if _NEGATED.search(before) or _PARTICLE.match(after):
        return False
    if verb in _UNLESS_BEFORE and _UNLESS_BEFORE[verb].search(before):
        return False
    return not (verb in _UNLESS and _UNLESS[verb].match(after))


def _form(word: str, row: Mapping[str, str], before: str, after: str) -> str:
    """Name the form of the verb that stands between two texts; empty where it is no action."""
    if word == row["base"]:
        return "base" if _is_base(before, after, row["other_word"] == "yes") else ""
    if word == row["gerund"]:
        return "gerund" if _is_gerund(before, after) else ""
    if _SUBJECT.search(before):
        return "participle" if _PERFECT.search(before) else "past"
    if not (_AUXILIARY.search(before) or (_FOLLOWS.match(after) and not _ATTRIBUTE.search(before))):
        return ""
    return "past" if word != row["participle"] or (word == row["past"] and _ACTIVE.search(before)) else "participle"


def _is_base(before: str, after: str, ambiguous: bool) -> bool:
    follows = bool(_FOLLOWS.match(after) or _FORMULA.match(after))
    if _STARTS.search(before):
        # "Dry ethanol over sieves" is an order, "Dry ethanol was used" and "- Dry ethanol, 20 mL" are not.
        return not ambiguous or follows or bool(_ORDER.match(after))
    if _JOINED.search(before):
        return not ambiguous or (follows and not _STATE.search(before))
    return (follows or not ambiguous) and bool(_TO.search(before) or _MODAL.search(before))


def _is_gerund(before: str, after: str) -> bool:
    if _NOUN_AFTER.match(after):
        return False
    # "Cooling the melt" is an action, "Cooling took an hour" is not.
    follows = _FOLLOWS.match(after) or _FORMULA.match(after)
    return bool(_MEANS.search(before) or (follows and (_STARTS.search(before) or _JOINED.search(before))))


def _cased(old: str, new: str) -> str:
    if old.isupper():
        return new.upper()
    return new[0].upper() + new[1:] if old[0].isupper() else new
