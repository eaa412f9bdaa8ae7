"""The parameters of a run: one flat schema, loading, merging, checking.

A run is one flat YAML file, or several of which the later wins, and `name=value` overrides that win over files.
YAML is read as YAML 1.2 core and the schema decides what a plain scalar means: `1e-1` is a number where a number is
asked for, and `1:4`, `no`, `007` or a date stay text where text is asked for.
"""

from __future__ import annotations

import ast
import difflib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from helpers.params.scalars import Given, ParameterError, coerce, read_file

__all__ = ["ParameterError", "Params", "declared", "describe", "dump", "from_notebook", "load"]


def _distinct(names: list[str]) -> list[str]:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"{', '.join(map(repr, repeated))} is listed more than once")
    return names


Names = Annotated[list[str], Field(min_length=1), AfterValidator(_distinct)]
Count = Annotated[int, Field(gt=0)]
Share = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Params(BaseModel):
    """Everything that a run can be told, with bounds and meaning.

    >>> Params(seed=7).seed
    7
    >>> Params().pairing_rule
    'published'
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    run_id: str = Field("demo", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="folder in outputs/")
    seed: int = Field(42, ge=0, description="key of every draw")
    recipes: str = Field("builtin", min_length=1, description="builtin, a file or glob, or hf:dataset[:split]")
    n_recipes: Count | None = Field(None, description="the first n recipes; None takes all")
    instructions: str = Field("builtin", min_length=1, description="builtin, a file or glob, or hf:dataset[:split]")
    n_per_subset: Count | None = Field(None, description="the first n instructions a subset; None takes all")
    columns: dict[str, str] = Field({}, description="our column name: the file's column name")
    principle_mix: str = Field("code", min_length=1, description="code, readme, or a YAML file")
    unknown_subset: Literal["error", "helpfulness"] = Field("error", description="what an unknown subset draws")
    models: Names = Field(
        ["smollm2-greedy", "smollm2-cool", "smollm2-warm", "smollm2-hot", "smollm2-wide"],
        description="pool of models that answer instructions",
    )
    completions_per_instruction: Count = Field(4, description="models drawn for each instruction")
    conditions: Names = Field(["all"], description="perturbed datasets to make; all is the 17")
    name_model: str = Field("", description="model that may propose names the tables lack; none by default")
    judges: Names = Field(["stoichiometry", "process", "equipment", "surface"], description="panel that judges recipes")
    instruction_judges: Names = Field(
        ["reference", "calibration", "coverage", "form"],
        description="panel that judges answers to instructions",
    )
    judge_repeats: Count = Field(1, description="times each judge is asked")
    temperature: Amount = Field(0.0, description="sampling temperature of judges")
    max_tokens: Count | None = Field(4096, description="longest judge reply; None leaves it to the server")
    concurrency: Count = Field(64, description="most requests in flight a model")
    budget: Amount = Field(0.0, description="most money to spend, in the currency of models_file; 0 sets no limit")
    budget_requests: int = Field(0, ge=0, description="most requests to send; 0 sets no limit")
    models_file: str = Field("params/models.yaml", min_length=1, description="addresses, keys' names and prices")
    min_scores: Count = Field(1, description="fewest scores that make an anchor")
    pairing_rule: Literal["published", "nearest"] = Field("published", description="how pairs are chosen")
    min_delta: Amount = Field(0.5, description="smallest score difference of a pair")
    represent_tolerance: Amount = Field(1.5, description="how far below the anchor a chosen score may lie")
    error_tolerance: Amount = Field(2.0, description="how far below the anchor a rejected score may lie")
    max_pairs: Count = Field(5, description="most pairs a recipe and dataset")
    split_by: Literal["sample", "row"] = Field("sample", description="what never stands on both sides")
    validation_fraction: Share = Field(0.1, description="share of pairs in the validation split")
    licence: str = Field("", description="licence of an input that is not built in, such as cc-by-4.0")
    message_format: Literal["messages", "json"] = Field("messages", description="lists of messages or JSON text")
    tokenizer: str = Field("", description="tokenizer of the model to train, for the check of lengths")
    max_length: Count = Field(1024, description="where the trainer cuts, in tokens")
    tau: Amount = Field(0.5, description="score change that counts as noticed")
    bootstrap_samples: Count = Field(1000, description="resamples behind every interval")
    figure_style: Literal["acl", "neurips", "nature", "aps", "screen"] = Field(
        "screen", description="page that the figures are made for"
    )
    interactive: bool = Field(True, description="widgets and a live bar; false in a batch")
    engine: Literal["local", "dask"] = Field("local", description="where buckets are worked on")
    dask_scheduler: str = Field("", description="address of a Dask scheduler")
    buckets: Count = Field(1, description="parts of the recipes that are worked through one by one")

    @model_validator(mode="after")
    def _fits_together(self) -> Params:
        if self.completions_per_instruction > len(self.models):
            raise ValueError(
                f"'completions_per_instruction' is {self.completions_per_instruction}, "
                f"but 'models' lists only {len(self.models)}"
            )
        if self.run_id.startswith("answers.sqlite"):
            raise ValueError(f"'run_id' is {self.run_id!r}, the name of the answer store; choose another")
        if self.engine == "dask" and not self.dask_scheduler:
            raise ValueError("'engine' is dask, so 'dask_scheduler' must give its address")
        if self.conditions != ["all"]:
            from helpers.perturbations import canonical

            for name in self.conditions:
                try:
                    canonical(name)
                except ValueError as error:
                    raise ValueError(f"'conditions': {error}, or all") from None
        return self


def load(files: Iterable[str | Path] = (), overrides: Mapping[str, Any] | None = None) -> Params:
    """Merge parameter files (later wins) and overrides (they win over files) and check the result.

    Raises ParameterError, which names the key, the value and, where there is one, the file and line.

    >>> load(overrides={"judges": "stoichiometry, process", "min_delta": "1e-1"}).judges
    ['stoichiometry', 'process']
    >>> load(overrides={"sede": 3})
    Traceback (most recent call last):
    helpers.params.scalars.ParameterError: 'sede' is not a parameter; did you mean 'seed'?
    """
    given: dict[str, Given] = {}
    for file in files:
        given.update(read_file(Path(file)))
    given.update({name: Given(value, "") for name, value in (overrides or {}).items()})
    return _build(given)


def from_notebook(namespace: Mapping[str, Any]) -> Params:
    """Check the values that a notebook's parameters cells have set; call it as `from_notebook(globals())`.

    The names come from the notebook's own cell and from the one that papermill adds after it, so that a misspelt
    name that papermill only warns of stops here. A batch that does not say otherwise is not interactive.
    """
    cells = [source for source in namespace.get("In", []) if source.startswith("# Parameters")]
    own = [source for source in cells if source.strip().split("\n")[0] != "# Parameters"][-1:]
    injected = [source for source in cells if source.strip().split("\n")[0] == "# Parameters"][-1:]
    names = {name for source in own + injected for name in _assigned(source)}
    values = {name: namespace[name] for name in sorted(names)}
    if injected and "interactive" not in _assigned(injected[0]):
        values["interactive"] = False
    return load(overrides=values)


def declared(notebook: str | Path) -> dict[str, Any]:
    """Return the names and defaults in a notebook's one cell tagged `parameters`.

    Raises ParameterError for a notebook without such a cell, with several, or with a default that is no literal.
    """
    path = Path(notebook)
    cells = [
        "".join(cell["source"])
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if "parameters" in cell.get("metadata", {}).get("tags", [])
    ]
    if len(cells) != 1:
        raise ParameterError(f"{path.name} has {len(cells)} cells tagged 'parameters'; it needs exactly one")
    return {name: _literal(node, name, path) for name, node in _assignments(cells[0])}


def dump(params: Params) -> str:
    """Write parameters as YAML that `load` reads back to the same values and types."""
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in params.model_dump().items()]
    return "\n".join(lines) + "\n"


def describe() -> str:
    """Return a Markdown table of every parameter: its name, default and meaning.

    >>> describe().splitlines()[2]
    '| `run_id` | `demo` | folder in outputs/ |'
    """
    rows = [
        f"| `{name}` | {_shown(field.default)} | {field.description} |" for name, field in Params.model_fields.items()
    ]
    return "\n".join(["| parameter | default | meaning |", "| --- | --- | --- |", *rows])


def _shown(default: Any) -> str:
    text = ", ".join(default) if isinstance(default, list) else str(default)
    return f"`{text}`" if text else ""


def _literal(node: ast.expr | None, name: str, path: Path) -> Any:
    try:
        return ast.literal_eval(node)  # type: ignore[arg-type]
    except (ValueError, TypeError, SyntaxError):
        raise ParameterError(f"{path.name}: the default of {name!r} in the parameters cell is not a literal") from None


def _assignments(source: str) -> Iterable[tuple[str, ast.expr | None]]:
    for node in ast.parse(source).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            if isinstance(target, ast.Name):
                yield target.id, getattr(node, "value", None)


def _assigned(source: str) -> set[str]:
    return {name for name, _ in _assignments(source)}


def _build(given: Mapping[str, Given]) -> Params:
    values = {}
    for name, item in given.items():
        if name not in Params.model_fields:
            raise ParameterError(f"{item.where}{_unknown(name)}")
        values[name] = coerce(name, item, Params.model_fields[name].annotation)
    try:
        return Params(**values)
    except ValidationError as error:
        raise ParameterError(_first_problem(error, given)) from None


def _unknown(name: str) -> str:
    strange = [f"{letter} is U+{ord(letter):04X}" for letter in name if ord(letter) > 126]
    near = difflib.get_close_matches(name, Params.model_fields, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else f"; known are: {', '.join(Params.model_fields)}"
    return f"'{name}'{' (' + ', '.join(strange) + ')' if strange else ''} is not a parameter{hint}"


def _first_problem(error: ValidationError, given: Mapping[str, Given]) -> str:
    problem = error.errors()[0]
    message = problem["msg"].removeprefix("Value error, ")
    if not problem["loc"]:
        return message
    name = str(problem["loc"][0])
    shown = repr(problem["input"])
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    where = given[name].where if name in given else ""
    return f"{where}'{name}' is {shown}: {message[0].lower()}{message[1:]}"
