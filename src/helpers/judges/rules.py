"""The built-in judges: rules that read only the text they are given, and answer in the form of a model.

They let anyone run the suite without a key, and are the baseline that any model must beat. Their reply is
reasoning in a few sentences and one fenced JSON object, and goes through the same parser as every other.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from helpers import rubrics
from helpers.judges import rules_equipment, rules_instruction, rules_process, rules_stoichiometry, rules_surface
from helpers.judges.rules_text import Fault, Opinion

__all__ = ["INSTRUCTION_JUDGES", "JUDGES", "RECIPE_JUDGES", "fingerprint", "reply"]

_RECIPE: Mapping[str, Callable[[str, str], Opinion]] = {
    "stoichiometry": rules_stoichiometry.judge,
    "process": rules_process.judge,
    "equipment": rules_equipment.judge,
    "surface": rules_surface.judge,
}
_INSTRUCTION = rules_instruction.JUDGES
RECIPE_JUDGES, INSTRUCTION_JUDGES = tuple(_RECIPE), tuple(_INSTRUCTION)
JUDGES = RECIPE_JUDGES + INSTRUCTION_JUDGES
_READ_WITH = (
    "rubrics.py", "perturbations/composition.py", "perturbations/nomenclature.py", "data/compounds.csv",
    "data/elements.csv", "data/ions.csv", "data/tokens.csv",
)  # fmt: skip
_NO_VIEW = 3.0  # the points of an aspect on which a judge has no view
_ADDRESSED = re.compile(
    r"overall[_ ]score|_score\b|ignore (?:all|any|previous) |\b(?:dear|as a|for the) judge|full marks"
    r"|(?:give|rate) (?:this|it) (?:a|full|5)|\bscore\W{1,4}[1-5](?:\.5|\.0)?\b", re.I,
)  # fmt: skip
_SENTENCES = re.compile(r"((?<=[.!?])\s+|\n)")
_TOLD = 5  # faults that a reply names, the dearest first


def reply(judge: str, messages: Sequence[Mapping[str, str]]) -> str:
    """Answer a request of `rubrics` as a model would; depends on the messages and on nothing else.

    >>> messages = rubrics.recipe_messages("Synthesis of BaTiO3.", "## Materials\\n- BaCO3, 1 mol")
    >>> reply("stoichiometry", messages).partition(".")[0]
    'No material supplies Ti, which BaTiO3 needs'
    """
    parts = rubrics.parts(messages)
    if judge in _RECIPE and {"request", "recipe"} <= parts.keys():
        text, addressed = _overheard(parts["recipe"][0])
        return _written(_RECIPE[judge](parts["request"][0], text), addressed, rubrics.RECIPE)
    if judge in _INSTRUCTION and {"instruction", "response"} <= parts.keys():
        text, addressed = _overheard(parts["response"][0])
        return _written(_INSTRUCTION[judge]({**parts, "response": [text]}), addressed, rubrics.INSTRUCTION)
    raise ValueError(
        f"the rule judge {judge!r} cannot read a request with the parts {sorted(parts)}; it is one of {JUDGES}"
    )


@cache
def fingerprint() -> str:
    """Return 12 hex digits of the rules' code and tables, so that no answer outlives the rules that gave it."""
    here = Path(__file__).parent
    files = [
        *here.glob("rules*.py"),
        *(here.parent / "data").glob("judge_*"),
        *(here.parent / name for name in _READ_WITH),
    ]
    digest = hashlib.sha256()
    for path in sorted(files, key=lambda path: path.name):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _overheard(text: str) -> tuple[str, list[Fault]]:
    """Drop the sentences that speak to a judge, and mind them: they are no part of what is judged."""
    if not _ADDRESSED.search(text):
        return text, []
    kept = [piece for piece in _SENTENCES.split(text) if not _ADDRESSED.search(piece)]
    return "".join(kept), [Fault(1.0, "The text speaks to its judge; I leave those words out and mind them.")]


def _written(opinion: Opinion, addressed: list[Fault], rubric: rubrics.Rubric) -> str:
    faults = [*addressed, *sorted(opinion.faults, key=lambda fault: -fault.price)]
    told = list(dict.fromkeys(fault.text for fault in faults))
    more = [f"There are {len(told) - _TOLD} smaller faults."] if len(told) > _TOLD else []
    cost = sum(fault.price for fault in faults)
    verdict = f"That costs {cost:g} points." if told else "I find no fault in what I know about."
    points = {key: opinion.points.get(key.removesuffix("_score"), _NO_VIEW) for key in rubric.scores}
    scores = {key: _half_steps(value - len(addressed)) for key, value in points.items()}
    reasoning = " ".join([*told[:_TOLD], *more, *opinion.remarks, verdict])
    return f"{reasoning}\n\n```json\n{json.dumps(scores)}\n```"


def _half_steps(points: float) -> float:
    """Round to the nearest score of the rubric; points below 1 are a 1, for there is no lower score to give."""
    return min(5.0, max(1.0, int(2 * points + 0.5) / 2))
