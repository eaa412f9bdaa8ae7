"""Print how many precursor mentions of real recipes can be renamed, each round trip checked.

    python tests/coverage_names.py recipes.jsonl

A mention is a line "- X, n mol per mol ..." below "## Materials". It counts as renamed if one of the three
directions changes it and what is written instead reads back as the same composition with the same water.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

from helpers.perturbations import names
from helpers.perturbations.edits import Edit
from helpers.perturbations.nomenclature import read, same

_LINE = re.compile(r"(?m)^- (?P<material>.*), [^,\n]* mol per mol.*$")
DIRECTIONS = ("formula", "name", "iupac")


def exact(edit: Edit, line: str) -> bool:
    """Say whether the new text means the compound that the edit is about, or only changed places with its twin."""
    return same(read(edit.new) or edit.new, edit.entity) or edit.new in line


def main(file: str) -> None:
    recipes = [json.loads(line)["recipe"] for line in Path(file).read_text("utf-8").splitlines()]
    total, missed, wrong, applicable = 0, Counter[str](), Counter[str](), Counter[str]()
    changed: Counter[str] = Counter()
    for text in recipes:
        edits = {to: names.propose(text, to, seed=0, sample_id="") for to in DIRECTIONS}
        applicable.update(to for to in DIRECTIONS if edits[to])
        for line in _LINE.finditer(text):
            total += 1
            here = {to: [e for e in edits[to] if line.start() < e.start < line.end()] for to in DIRECTIONS}
            changed.update(to for to in DIRECTIONS if here[to])
            found = [edit for to in DIRECTIONS for edit in here[to]]
            if not found:
                missed[line["material"]] += 1
            elif not all(exact(edit, line.group()) for edit in found):
                wrong[line["material"]] += 1
    renamed = 1 - sum(missed.values()) / total
    print(f"{total} mentions, {renamed:.1%} renamed, {sum(wrong.values())} without an exact round trip")
    for to in DIRECTIONS:
        print(
            f"  to_{to}: {changed[to] / total:.1%} of the mentions, {applicable[to] / len(recipes):.1%} of the recipes"
        )
    print("30 commonest that are not renamed:")
    for material, count in missed.most_common(30):
        print(f"  {count:3} {material}")
    if wrong:
        sys.exit(f"no exact round trip: {wrong.most_common(10)}")


if __name__ == "__main__":
    main(sys.argv[1])
