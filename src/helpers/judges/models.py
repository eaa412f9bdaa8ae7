"""What is known of each model that may be asked: one entry in the models file, or a built-in judge."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from helpers import answers
from helpers.answers import Request
from helpers.params.scalars import Given, ParameterError, read_file

__all__ = ["RULE_JUDGES", "Model", "ModelError", "keys", "load"]

RULE_JUDGES = (
    "stoichiometry", "process", "equipment", "surface",
    "reference", "calibration", "coverage", "form",
)  # fmt: skip


class ModelError(ParameterError):
    """A model that cannot be asked as it is described; names the model, the value and the fix."""


class Model(BaseModel):
    """How one model is reached, what it costs and what it bears.

    Prices are for a million tokens. `extra` fields go into every request and win over the run's own, so that one
    model can stand in the file under several names with different sampling. `context` is in tokens, 0 is unknown.

    >>> Model(name="m", base_url="http://127.0.0.1:8000/v1", model="Qwen/Qwen3-8B").max_concurrency
    64
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: str
    kind: Literal["rules", "endpoint", "local"] = "endpoint"
    base_url: str = ""
    model: str = ""
    key_env: str = Field(default="", pattern=r"^([A-Z_][A-Z0-9_]*)?$")
    price_prompt: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    price_completion: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    currency: str = "USD"
    max_concurrency: int = Field(default=64, gt=0)
    requests_per_minute: int = Field(default=0, ge=0)
    tokens_per_minute: int = Field(default=0, ge=0)
    timeout_s: float = Field(default=60.0, gt=0)
    extra: dict[str, Any] = {}
    json_schema: bool = False
    seeded: bool = True
    context: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _is_complete(self) -> Model:
        if self.kind == "endpoint":
            address = urlsplit(self.base_url)
            if address.scheme not in ("http", "https") or not address.hostname:
                raise ValueError("'base_url' must be an address such as http://127.0.0.1:8000/v1")
            if address.username or address.query:
                raise ValueError("'base_url' must hold no user, password or query; put the key into 'key_env'")
            if not self.model:
                raise ValueError("'model' must be the id that the server knows the model by")
        if (self.price_prompt is None) != (self.price_completion is None):
            raise ValueError("give both 'price_prompt' and 'price_completion', or neither")
        return self

    @property
    def identity(self) -> str:
        """Return what decides this model's answers beside the request: never the address, which may move."""
        if self.kind == "rules":
            from helpers.judges import rules

            return f"rules {rules.fingerprint()}"
        return json.dumps([self.kind, self.model, self.extra, self.json_schema], sort_keys=True)

    def cost(self, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        """Return what so many tokens cost, or None where tokens or prices are not known.

        >>> address = {"base_url": "http://127.0.0.1:8000/v1", "model": "M"}
        >>> Model(name="m", **address, price_prompt=1.0, price_completion=4.0).cost(1_000_000, 500_000)
        3.0
        """
        if self.kind != "endpoint":
            return 0.0
        if self.price_prompt is None or self.price_completion is None:
            return None
        if prompt_tokens is None or completion_tokens is None:
            return None
        return (prompt_tokens * self.price_prompt + completion_tokens * self.price_completion) / 1e6

    def secret(self) -> str:
        """Read the key from the environment; raises ModelError when the variable is missing, empty or no plain text."""
        if trouble := self.key_trouble():
            raise ModelError(f"model {self.name!r} needs the environment variable {self.key_env}, which {trouble}")
        return self._key()

    def key_trouble(self) -> str:
        """Say in a few words what is wrong with the key's variable, or nothing."""
        value = self._key()
        if self.key_env and not value:
            return "is not set"
        return "" if value.isascii() and value.isprintable() else "holds characters that no key has"

    def _key(self) -> str:
        return os.environ.get(self.key_env, "").strip() if self.key_env else ""


def keys(requests: Iterable[Request], models: Mapping[str, Model]) -> list[bytes]:
    """Return the key in the answer store of each request to these models."""
    requests = list(requests)
    asked = set(map(attrgetter("model"), requests))
    return answers.keys(requests, {name: model.identity for name, model in models.items() if name in asked})


def load(path: str | Path, names: Iterable[str] | None = None) -> dict[str, Model]:
    """Read the named models from a models file, or all of them; built-in judges need no entry.

    Raises ModelError that names the file, the model and the field, or a name that neither knows; ParameterError for a
    file that cannot be read.
    """
    entries = read_file(Path(path))
    clash = sorted(set(entries) & set(RULE_JUDGES))
    if clash:
        raise ModelError(f"{path}: {clash[0]!r} is the name of a built-in judge; give the model another name")
    wanted = [*entries, *RULE_JUDGES] if names is None else dict.fromkeys(names)
    return {name: _model(name, entries, path) for name in wanted}


def _model(name: str, entries: Mapping[str, Given], path: str | Path) -> Model:
    if name in RULE_JUDGES:
        return Model(name=name, kind="rules")
    if name not in entries:
        known = [*entries, *RULE_JUDGES]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(known)}"
        raise ModelError(f"{path}: has no model {name!r}; {hint}")
    fields, where, _ = entries[name]
    if not isinstance(fields, dict):
        raise ModelError(f"{where}{name!r} must hold fields such as 'base_url' and 'model'")
    try:
        return Model.model_validate({**fields, "name": name, "extra": _resolved(fields.get("extra", {}))})
    except ValidationError as error:
        raise ModelError(f"{where}{name!r}: {_problem(error)}") from None


def _resolved(value: Any) -> Any:
    """Read the scalars of free-form fields: what is a number, true, false or null in JSON is one, all else is text."""
    if isinstance(value, dict):
        return {name: _resolved(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_resolved(item) for item in value]
    try:
        return json.loads(value)
    except ValueError:
        return value


def _problem(error: ValidationError) -> str:
    problem = error.errors(include_input=False)[0]
    field = f"'{problem['loc'][0]}': " if problem["loc"] else ""
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        message = f"is not a field; known are: {', '.join(Model.model_fields)}"
    if problem["loc"] == ("key_env",):
        message = "must be the NAME of an environment variable, in capitals; the key itself belongs into no file"
    return f"{field}{message}"
