"""The tested core of Plumbline: preference data that straightens LLM judges.

The nouns of the method, in the order of the notebooks:

* `params`, `runs` (with `records`), `stages`: a run's parameters, its folder, its notebooks in order
* `sources`, `principles`, `perturbations`, `items`: what is judged
* `rubrics`, `judges`, `answers`, `workload`, `progress`: who judges, through one store of answers
* `verdicts`, `judgements`: what was said, as typed rows
* `anchoring`, `pairing`: preferences
* `export`: what a trainer gets
* `metrics`, `figures`, `tables`, `explore`, `report`: what a reader gets

`keyed` is the randomness of all of them.
"""
