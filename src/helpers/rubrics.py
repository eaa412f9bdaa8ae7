"""What judges are asked: two rubrics, and the requests made from them.

The system message is the rubric and never changes, so that servers can share it as a prefix. The user message
holds the texts to judge, each between two fence lines that are longer than any run of their sign in any of the
texts: no text can end its own quotation, or pass for another part or for the rubric.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "INSTRUCTION", "RECIPE", "Message", "Rubric", "instruction_messages", "parts", "recipe_messages", "response_format",
    "user_text",
]  # fmt: skip

Message = dict[str, str]


@dataclass(frozen=True, slots=True)
class Rubric:
    """A rubric: its name, the keys of its scores with the overall score last, and the system message."""

    name: str
    scores: tuple[str, ...]
    system: str


def _load(name: str, *aspects: str) -> Rubric:
    text = (Path(__file__).parent / "data" / f"rubric_{name}.md").read_text("utf-8")
    return Rubric(name, (*(f"{aspect}_score" for aspect in aspects), "overall_score"), text.strip())


RECIPE = _load(
    "recipe", "materials_appropriateness", "equipment_appropriateness", "procedure_completeness",
    "procedure_feasibility", "characterization_appropriateness",
)  # fmt: skip
INSTRUCTION = _load("instruction", "instruction_following", "honesty", "truthfulness", "helpfulness")


def recipe_messages(contribution: str, recipe: str) -> list[Message]:
    """Ask for a verdict on a recipe without a reference; `contribution` says what is to be made.

    >>> print(recipe_messages("Make ZnO.", "Heat zinc acetate at 400 °C.")[1]["content"])
    ~~~~ request
    Make ZnO.
    ~~~~
    <BLANKLINE>
    ~~~~ recipe
    Heat zinc acetate at 400 °C.
    ~~~~
    <BLANKLINE>
    Judge the recipe.
    """
    return _messages(RECIPE, [("request", contribution), ("recipe", recipe)])


def instruction_messages(
    instruction: str, response: str, correct_answers: Iterable[str] = (), incorrect_answers: Iterable[str] = ()
) -> list[Message]:
    """Ask for a verdict on a response; reference answers come before it, so that its rivals share a prefix."""
    correct = [("correct answer", answer) for answer in correct_answers]
    incorrect = [("incorrect answer", answer) for answer in incorrect_answers]
    return _messages(INSTRUCTION, [("instruction", instruction), *correct, *incorrect, ("response", response)])


def user_text(messages: Sequence[Mapping[str, str]]) -> str:
    """Return what the user says in a request: the part that differs between texts to judge."""
    return "\n\n".join(message["content"] for message in messages if message["role"] == "user")


def parts(messages: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    """Return the texts of a request by their labels; undoes `recipe_messages` and `instruction_messages`.

    >>> parts(instruction_messages("2 + 2?", "4", ["4", "four"]))
    {'instruction': ['2 + 2?'], 'correct answer': ['4', 'four'], 'response': ['4']}
    """
    found: dict[str, list[str]] = {}
    text = user_text(messages)
    if fence := re.match("~{4,}", text):
        for part in text.split(f"\n{fence[0]}\n\n")[:-1]:
            label, _, content = part.removeprefix(f"{fence[0]} ").partition("\n")
            found.setdefault(label, []).append(content)
    return found


def response_format(rubric: Rubric) -> dict[str, Any]:
    """Return the sampling field that asks for the reasoning first and then each score, 1 to 5 in half steps.

    It is sent to the models that take a JSON schema, and left out for the others.
    """
    score = {"type": "number", "enum": [step / 2 for step in range(2, 11)]}
    properties = {"reasoning": {"type": "string"}, **dict.fromkeys(rubric.scores, score)}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": schema}}


def _messages(rubric: Rubric, texts: list[tuple[str, str]]) -> list[Message]:
    longest = max((len(run) for _, text in texts for run in re.findall("~+", text)), default=0)
    fence = "~" * max(4, longest + 1)
    quoted = "".join(f"{fence} {label}\n{text}\n{fence}\n\n" for label, text in texts)
    judged = texts[-1][0]
    return [
        {"role": "system", "content": rubric.system},
        {"role": "user", "content": f"{quoted}Judge the {judged}."},
    ]
