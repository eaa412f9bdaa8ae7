"""All 17 conditions on every recipe of a file, three seeds: every property that a label rests on.

    python tests/sweep.py recipes.jsonl

Prints applicability per condition and the first few failures; exits with 1 when there is one.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from helpers.perturbations import (
    CONDITIONS,
    Edit,
    Perturbation,
    actions,
    composition,
    equipment,
    formulas,
    names,
    perturb,
    quantities,
    revert,
)

SEEDS = (0, 1, 42)


def finder_spans(text: str) -> dict[str, list[tuple[int, int]]]:
    """Return where each kind of edit may stand, by the finders themselves."""
    chemical = [*formulas.spans(text), *names.spans(text)]
    return {
        "element_substitution": chemical,
        "numerical_perturbation": [(q.start, q.end) for tied in quantities.find(text) for q in tied],
        "equipment_substitution": [(m.start, m.end) for m in equipment.find(text)],
        "action_antonym": [(a.start, a.end) for a in actions.find(text)],
        **dict.fromkeys(("to_formula", "to_name", "to_iupac"), chemical),
    }


def balance(text: str) -> list[int]:
    return [text.count(a) - text.count(b) for a, b in ("()", "[]", "{}")]


def unknown_elements(change: Edit) -> bool:
    known = {row["symbol"] for row in composition.rows("elements")}
    return change.kind == "element_substitution" and not formulas.elements(change.new) <= known


def failures(text: str, result: Perturbation, inside: dict[str, list[tuple[int, int]]]) -> Iterator[str]:
    """Yield what is wrong with one perturbation; nothing, it is hoped."""
    changes = result.changes
    if revert(result.text, changes) != text:
        yield "revert does not give the original"
    if result.applicable != (result.text != text) or result.applicable != bool(changes):
        yield "applicable, but not changed, or the reverse"
    if any(a.end > b.start for a, b in itertools.pairwise(changes)):
        yield "spans overlap"
    if balance(result.text) != balance(text):
        yield "brackets are not balanced"
    for change in changes:
        if not any(a <= change.start and change.end <= b for a, b in inside[change.kind]):
            yield f"{change.old!r} is outside the finder's spans"
        if unknown_elements(change):
            yield f"{change.new!r} has an unknown element"
        if not change.why:
            yield f"{change.old!r} does not say why"


def sweep(recipe: dict[str, Any], seed: int) -> Iterator[tuple[str, Perturbation | str]]:
    """Yield every condition with its result, and with what is wrong."""
    text, key = recipe["recipe"], str(recipe["sample_id"])
    inside, lower = finder_spans(text), {"error": frozenset[Edit](), "represent": frozenset[Edit]()}
    for name, condition in CONDITIONS.items():
        result = perturb(text, name, seed=seed, sample_id=key, target=recipe["Material_Name"])
        yield name, result
        yield from ((name, wrong) for wrong in failures(text, result, inside))
        if condition.rate < 1:
            if not lower[condition.category] <= set(result.changes):
                yield name, "does not contain the lower rate"
            lower[condition.category] = frozenset(result.changes)


def fingerprint(recipes: list[dict[str, Any]], names: list[str]) -> str:
    """Return a digest of all texts that does not depend on the order in which they are made."""
    made = [
        f"{row['sample_id']} {name} "
        + perturb(row["recipe"], name, seed=42, sample_id=str(row["sample_id"]), target=row["Material_Name"]).text
        for row in recipes
        for name in names
    ]
    return hashlib.sha256("\n".join(sorted(made)).encode()).hexdigest()


def elsewhere(file: str) -> str:
    """Return the fingerprint from another process: other hash seed, recipes and conditions backwards."""
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    command = [sys.executable, __file__, file, "backwards"]
    return subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout.strip()


def load(file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]


def main(file: str) -> int:
    recipes = load(file)
    applicable, rates, wrong = Counter[str](), Counter[str](), list[str]()
    for recipe in recipes:
        for seed in SEEDS:
            for name, found in sweep(recipe, seed):
                if isinstance(found, str):
                    wrong.append(f"{recipe['sample_id']} {name} seed {seed}: {found}")
                else:
                    applicable[name] += found.applicable
                    rates[name] += found.rate_actual  # type: ignore[assignment]
    if fingerprint(recipes, list(CONDITIONS)) != elsewhere(file):
        wrong.append("another order or process gives other texts")
    total = len(recipes) * len(SEEDS)
    for name in CONDITIONS:
        print(f"{name:42} applicable {applicable[name] / total:7.2%}  mean rate {rates[name] / total:6.2%}")
    print(f"{total * len(CONDITIONS)} texts, {len(wrong)} failures", *wrong[:20], sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case [path]:
            raise SystemExit(main(path))
        case [path, "backwards"]:
            print(fingerprint(load(path)[::-1], list(CONDITIONS)[::-1]))
        case _:
            raise SystemExit("give the file with the recipes: make sweep FILE=recipes.jsonl")
