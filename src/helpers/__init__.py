"""The tested core of Plumbline: preference data that straightens LLM judges.

The nouns of the method, in the order of the notebooks:

* `params` (with `scalars`), `runs` (with `records`), `stages`: a run's parameters, its folder, its notebooks in order
* `sources` (with `readers`), `principles` (with `mixes`, `multinomial`), `perturbations`, `items`: what is judged
* `rubrics`, `judges`, `answers` (with `archive`), `workload`: who judges, through one store of answers
* `verdicts` (with `replies`, `lenient_json`), `judgements`: what was said, as typed rows
* `anchoring`, `pairing` (with `cube`), `splits`, `leaks` (with `texts`), `preflight`, `scale`: preferences
* `export` (with `card`), `dataset`: what a trainer gets
* `metrics`, `figures`, `tables`, `explore`, `report`: what a reader gets

`keyed` is the randomness of all of them.
"""
