"""Print what reading a verdict costs beside the floor: find the fence, then json.loads.

    python tests/bench_verdicts.py [replies]

The replies are synthetic, 1.5 kB each: eight in ten are clean, the others have a sign of a tag or of a list
in their prose, a reasoning block, a trailing comma or no verdict.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any

from helpers import rubrics, verdicts

WORDS = ["the", "recipe", "heats", "powder", "long", "while", "grinding", "mixes", "oxides", "in", "air"]


def reply(rng: random.Random, kind: str) -> str:
    """Return one synthetic reply of about 1.5 kB."""
    prose = " ".join(rng.choices(WORDS, k=400))[:1220]
    scores = json.dumps({key: rng.randint(2, 10) / 2 for key in rubrics.RECIPE.scores})
    fenced = f"{prose}\n\n```json\n{scores}\n```"
    return {
        "clean": fenced,
        "sign": f"[Zn(OH)4]2- forms at pH < 7. {fenced}",
        "thought": f"<think>{prose[:300]}</think>{fenced}",
        "comma": fenced.replace("}", ",}"),
        "none": prose,
    }[kind]


def floor(raw: str) -> Any:
    """Read the last fenced block as JSON."""
    begin = raw.rfind("```json") + 7
    return json.loads(raw[begin : raw.find("```", begin)])


def seconds(read: Callable[[str], Any], replies: list[str]) -> float:
    """Return the best of three passes."""
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        for raw in replies:
            read(raw)
        times.append(time.perf_counter() - begin)
    return min(times)


def main(count: int) -> None:
    """Print seconds and ratios for clean and for mixed replies."""
    rng = random.Random(0)
    clean = [reply(rng, "clean") for _ in range(count)]
    mixed = [
        reply(rng, kind)
        for kind in rng.choices(["clean", "sign", "thought", "comma", "none"], [8, 0.8, 0.6, 0.4, 0.2], k=count)
    ]
    base = seconds(floor, clean)
    print(f"{count:,} replies of {sum(map(len, clean)) // count:,} characters")
    print(f"floor   {base:6.2f} s  {base / count * 1e6:5.2f} µs each")
    for name, replies in (("clean", clean), ("mixed", mixed)):
        took = seconds(verdicts.parse, replies)
        print(f"{name}   {took:6.2f} s  {took / count * 1e6:5.2f} µs each  ratio {took / base:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 136_000)
