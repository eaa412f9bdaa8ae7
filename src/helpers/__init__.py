"""The tested core of Plumbline: preference data that straightens LLM judges.

One module per noun of the method, in the order of the notebooks: `params`, `runs`, `sources`, `principles`,
`perturbations`, `rubrics`, `judges`, `answers`, `verdicts`, `anchoring`, `pairing`, `export`, `metrics`,
`figures`, `explore`, `report`.
"""
