"""Names that the tables lack, proposed by a model: what it is asked, and which of its answers are taken.

A proposal counts only if reading it gives back the formula (`learning.accept`); `learning.learn` then puts it
to use. What a model writes is data: it is read as JSON, never run, and never quoted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from helpers.answers import Answer, Request

from . import learning, nomenclature
from .composition import parse
from .names import mentions

__all__ = ["accepted", "formulas", "is_answer", "requests"]

PROMPT = """Give the IUPAC name of the compound with the formula between the backticks.

`{formula}`

State oxidation numbers as in iron(III) oxide, or count every part with prefixes as in dilanthanum dioxide sulfide; \
name water of crystallisation as in pentahydrate. Reply with one JSON object and nothing else: {{"name": "..."}}"""
LONGEST_REPLY = 2_000
_NAME = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9 (),'·-]{1,80}")
_FENCED = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)


def formulas(texts: Iterable[str]) -> list[str]:
    """Return the formulas that no table or rule can name, each once and in plain characters, sorted.

    >>> formulas(["Mix La₂O₂S, ZnO and Co2(OH)3Cl.", "Add La2O2S."])
    ['Co2(OH)3Cl', 'La2O2S']
    """
    seen = {mention.formula for text in texts for mention in mentions(text) if mention.form == "formula"}
    read = {formula: parse(formula) for formula in seen if nomenclature.compound(formula) is None}
    return sorted({composition.plain for composition in read.values() if composition})


def requests(texts: Iterable[str], model: str) -> list[Request]:
    """Return one request for each of `formulas(texts)`, in that order."""
    return [
        Request(model, [{"role": "user", "content": PROMPT.format(formula=formula)}], {"temperature": 0.0})
        for formula in formulas(texts)
    ]


def accepted(asked: Sequence[str], answers: Sequence[Answer | None]) -> tuple[dict[str, str], dict[str, int]]:
    """Return the names that hold, by formula, and how many answers were accepted or declined, by reason.

    >>> accepted(["La2O2S"], [Answer(b"", True, '{"name": "dilanthanum dioxide sulfide"}')])
    ({'La2O2S': 'dilanthanum dioxide sulfide'}, {'accepted': 1})
    """
    names: dict[str, str] = {}
    reasons: Counter[str] = Counter()
    for formula, answer in zip(asked, answers, strict=True):
        proposed, reason = _proposed(answer)
        name = learning.accept(formula, proposed) if proposed else None
        if name:
            names[formula] = name
        reasons["accepted" if name else reason or "another compound"] += 1
    return names, dict(sorted(reasons.items()))


def is_answer(answer: Answer) -> bool:
    """Say whether a reply settles its request: it holds a name, be it the right one or not, or says that it has none.

    >>> replies = '{"name": "dilanthanum dioxide sulfide"}', '{"name": null}', "It is lanthanum oxysulfide."
    >>> [is_answer(Answer(b"", True, reply)) for reply in replies]
    [True, True, False]
    """
    name, reason = _proposed(answer)
    return bool(name) or reason == "refused"


def _proposed(answer: Answer | None) -> tuple[str, str]:
    """Return the name in an answer, or "" and why there is none."""
    if answer is None:
        return "", "no answer"
    if answer.refusal:
        return "", "refused"
    text = answer.text.strip()
    fenced = _FENCED.fullmatch(text)
    try:
        found = json.loads(fenced[1] if fenced else text) if len(text) <= LONGEST_REPLY else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or "name" not in found:
        return "", "no JSON object with a name"
    name = found["name"]
    if name is None or name == "":
        return "", "refused"
    return (name, "") if isinstance(name, str) and _NAME.fullmatch(name) else ("", "not a name")
