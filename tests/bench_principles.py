"""Time the keyed draw against the published per-example style: 250,000 instructions with four completions each.

Run `python tests/bench_principles.py`. Both sides record the principle and the prompt's text of every completion, in
the same process, in turns; the ratio of the medians is what counts, the goal is 5.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from helpers import principles

INSTRUCTIONS, SLOTS, ROUNDS, GOAL = 250_000, 4, 5, 5.0
POOLS = {name: principles.prompts(name) for name in principles.PRINCIPLES}


def add_completion(example: dict[str, Any], subset: str) -> dict[str, Any]:
    """Draw for one completion in the published style: a fresh list, two generators, a record appended."""
    if subset in ["sharegpt", "ultrachat"]:
        principle = random.choice(["helpfulness", "helpfulness", "helpfulness", "truthfulness", "honesty"])
    elif subset in ["flan"]:
        principle = random.choice(["helpfulness"] * 4 + ["verbalized_calibration"])
    elif subset in ["evol_instruct"]:
        principle = "helpfulness"
    else:
        principle = random.choice(["honesty", "truthfulness"])
    if principle == "honesty":
        principle = "verbalized_calibration" if np.random.rand() < 0.1 else "honesty"
    example["completions"].append({"principle": principle, "system_prompt": random.choice(POOLS[principle])})
    return example


def published_style(subsets: list[str]) -> list[dict[str, Any]]:
    examples: list[dict[str, Any]] = [{"completions": []} for _ in subsets]
    for example, subset in zip(examples, subsets, strict=True):
        for _ in range(SLOTS):
            add_completion(example, subset)
    return examples


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> int:
    names = principles.subsets()
    subsets = [names[i % len(names)] for i in range(INSTRUCTIONS)]
    ids = np.repeat(np.array([f"instruction-{i}" for i in range(INSTRUCTIONS)], dtype=object), SLOTS)
    rows, slots = np.repeat(np.array(subsets, dtype=object), SLOTS), np.tile(np.arange(SLOTS), INSTRUCTIONS)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        theirs.append(seconds(lambda: published_style(subsets)))
        ours.append(seconds(lambda: principles.draw_steps(rows, ids, slots, seed=42)))
    keyed, published = statistics.median(ours), statistics.median(theirs)
    print(
        f"principles: {INSTRUCTIONS * SLOTS:,} completions: keyed {keyed:.3f} s, published style {published:.3f} s, "
        f"ratio {published / keyed:.1f} (goal {GOAL:.0f})"
    )
    return 0 if published / keyed >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
