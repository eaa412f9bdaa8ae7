"""Print how many texts a second one core perturbs over the 17 conditions, and where the time goes.

    python tests/bench_perturbations.py [recipes.jsonl]

Without a file the built-in recipes are used.
"""

from __future__ import annotations

import cProfile
import json
import pstats
import sys
import time
from importlib import resources
from pathlib import Path
from typing import Any

from helpers.perturbations import CONDITIONS, perturb


def load(file: str | None) -> list[dict[str, Any]]:
    path = Path(file) if file else resources.files("helpers") / "data" / "recipes.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def run(recipes: list[dict[str, Any]]) -> float:
    """Perturb every recipe into every condition and return the processor seconds that it took."""
    start = time.process_time()
    for row in recipes:
        for name in CONDITIONS:
            perturb(row["recipe"], name, seed=42, sample_id=str(row["sample_id"]), target=row["Material_Name"])
    return time.process_time() - start


def unseen(recipes: list[dict[str, Any]], tail: str) -> list[dict[str, Any]]:
    """Return the recipes with another end, so that no cache knows them."""
    return [{**row, "recipe": row["recipe"] + tail} for row in recipes]


def main() -> None:
    recipes = load(sys.argv[1] if len(sys.argv) > 1 else None)
    loading = run(recipes) - (seconds := run(unseen(recipes, "\n")))
    made = len(recipes) * len(CONDITIONS)
    print(f"{len(recipes)} recipes, {made} texts: {made / seconds:,.0f} texts per second on one core (goal 3,000)")
    print(f"  and {max(0, loading):.1f} s once, to load the name tables")
    profile = cProfile.Profile()
    profile.runcall(run, unseen(recipes, "\n\n"))
    stats = pstats.Stats(profile)
    rows = sorted(stats.stats.items(), key=lambda item: -item[1][2])[:3]  # type: ignore[attr-defined]
    for (file, line, name), (_, calls, own, _, _) in rows:
        print(f"  {own / stats.total_tt:5.1%} of the time in {Path(file).name}:{line} {name}, {calls} calls")  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
