"""From a judge's reply to a typed verdict: one parser, one written policy, no guessing.

A score is read from a complete JSON object that holds `overall_score` at its top level or one wrapper down.
It is never rescaled, clamped, averaged from other scores or mined from prose. Whatever a reply leaves open
becomes a status without a score, so that the judge can be asked again; the raw reply stays stored as it came.

`ok`            the object was found as it stands; prose, fences and reasoning blocks around it are skipped
`repaired`      a syntax repair, a value or key conversion, or a choice between two objects was needed
`out_of_range`  a number, but not within 1 to 5
`unparsable`    no object, no such key, no single number, or verdicts that contradict each other
`truncated`     the reply was cut off before its object, or its reasoning, was complete
`refused`       the judge or a filter declined
`failed`        the server reported an error in place of a reply
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

from helpers.verdicts.lenient_json import number as number_of
from helpers.verdicts.lenient_json import snake
from helpers.verdicts.replies import Object, Reply, has_tag, read

__all__ = ["HIGHEST", "LOWEST", "STATUSES", "Status", "Verdict", "parse"]

Status = Literal["ok", "repaired", "out_of_range", "unparsable", "truncated", "refused", "failed"]
STATUSES: tuple[Status, ...] = get_args(Status)
LOWEST, HIGHEST = 1.0, 5.0
_OVERALL = "overall_score"

_ENDINGS = {
    **dict.fromkeys(("stop", "eos", "end_turn", "stop_sequence", "tool_calls"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), "length"),
    **dict.fromkeys(("content_filter", "refusal", "safety", "recitation", "prohibited_content"), "refused"),
    "error": "failed",
}
_LABEL = re.compile(
    r"^[ \t*#_-]{0,12}overall[ _-]?score[ \t*_`]{0,6}[:=][ \t*_`]{0,6}(\S[^\n]{0,60})$",
    re.IGNORECASE | re.MULTILINE,
)
_REFUSAL = re.compile(
    r"\b(?:can ?not|can't|won't|will not|unable to|not able to|must decline to|decline to|refuse to)\s+"
    r"(?:\w{1,20}\s+){0,3}?(?:assist|help|rate|evaluate|assess|judge|score|grade|provide|give|comply|answer"
    r"|fulfil+|continue|engage|discuss|review|support|offer|do (?:that|this|so))\b"
    r"|\A(?:i'm|i am) (?:very )?sorry\b|\Ai (?:must )?(?:decline|apologi[sz]e)\b",
    re.IGNORECASE,
)
_scan_floats = json.JSONDecoder(parse_int=float, parse_constant=lambda _: None).scan_once  # type: ignore[attr-defined]
_STEPS = frozenset(step / 2 for step in range(2, 11))
_Pairs = tuple[tuple[str, Any], ...]


class Verdict(NamedTuple):
    """What a reply says: `overall_score` is None unless the status is `ok` or `repaired`.

    `scores` holds the other `*_score` values beside it that lie within 1 to 5; `reason` says what was
    repaired, what is wrong, or which of the other scores were left out.
    """

    overall_score: float | None
    scores: dict[str, float]
    status: Status
    reason: str = ""


def parse(raw: str | None, *, finish_reason: str | None = "stop", refusal: str | None = None) -> Verdict:
    """Read the verdict from a judge's reply; never raises, in time linear in the reply.

    >>> parse('Sound.\\n```json\\n{"materials_score": 4, "overall_score": 3.5}\\n```')
    Verdict(overall_score=3.5, scores={'materials_score': 4.0}, status='ok', reason='')
    >>> parse('{"overall_score": 4.', finish_reason="length").status
    'truncated'
    """
    if finish_reason == "stop" and not refusal and type(raw) is str and (clean := _clean(raw)):
        return clean
    ending = _ENDINGS.get(str(finish_reason).lower(), "unknown")
    if refusal or ending == "refused":
        return Verdict(None, {}, "refused", str(refusal or f"finish_reason {finish_reason}")[:200])
    if ending == "failed":
        return Verdict(None, {}, "failed", f"finish_reason {finish_reason}")
    return _decide(read(raw if isinstance(raw, str) else ""), ending)


def _decide(reply: Reply, ending: str) -> Verdict:
    candidates, spoilt = [], False
    for found in reply.objects:
        if verdict := _verdict(found):
            candidates.append(verdict)
        # An unreadable object after the last candidate may have been the verdict, the candidate a quotation.
        spoilt = not verdict and (spoilt or "overall" in found.unreadable.lower())
    if (reply.unclosed and ending != "stop") or (ending == "length" and not candidates):
        return Verdict(None, {}, "truncated", f"the reply ends inside its {reply.unclosed or 'text'}")
    if spoilt or reply.given_up:
        return Verdict(None, {}, "unparsable", "the last object with overall_score cannot be read")
    if not candidates and (reply.objects or reply.unclosed):
        what = "no object has overall_score" if reply.objects else "the reasoning is never closed"
        return Verdict(None, {}, "unparsable", what)
    if candidates:
        return _choose(candidates, final=reply.ends_with_object and verdict is not None)
    return _prose(reply.visible, ending)


def _choose(candidates: list[Verdict], final: bool) -> Verdict:
    last = candidates[-1]
    if all(_outcome(other) == _outcome(last) for other in candidates):
        return last
    if not final:
        return Verdict(None, {}, "unparsable", "objects with different verdicts, and text after the last")
    if last.overall_score is None:
        return last
    return last._replace(status="repaired", reason=f"the last of several verdicts. {last.reason}".strip())


def _outcome(verdict: Verdict) -> float | str:
    return verdict.status if verdict.overall_score is None else verdict.overall_score


def _prose(text: str, ending: str) -> Verdict:
    """Read a reply without any object: a refusal, one labelled line, or nothing."""
    if _REFUSAL.search(text[:400]):
        return Verdict(None, {}, "refused", text[:200])
    labelled = _LABEL.findall(text)
    if len(labelled) != 1 or ending != "stop":
        return Verdict(None, {}, "unparsable", "no JSON object" if text else "the reply is empty")
    number = _number(labelled[0])
    return number._replace(status="repaired", reason="a labelled line") if number.status == "ok" else number


def _clean(raw: str) -> Verdict | None:
    """Read the common reply, prose and one flat object of scores, for little more than the price of its JSON."""
    start = raw.find("{")
    if start < 0 or start != raw.rfind("{") or "｛" in raw or raw.find("]", start) > 0:
        return None
    if ("<" in raw or "[" in raw or "◁" in raw) and (has_tag(raw) or raw[:start].rstrip()[-1:] == "["):
        return None
    try:
        scores, end = _scan_floats(raw, start)
        if not _STEPS.issuperset(scores.values()):
            return None
    except (StopIteration, ValueError, RecursionError, TypeError):  # a list among the values has no hash
        return None
    # As many colons as keys: no key came twice. Python takes true for 1.
    if raw.count(":", start, end) != len(scores) or raw.find("true", start, end) > 0:
        return None
    if not _are_score_names(tuple(scores)):
        return None
    return Verdict(scores.pop(_OVERALL), scores, "ok")


@lru_cache(maxsize=64)
def _are_score_names(keys: tuple[str, ...]) -> bool:
    return _OVERALL in keys and all(key.endswith("_score") and snake(key) == key for key in keys)


def _verdict(found: Object) -> Verdict | None:
    """Read the verdict of an object, None if it has no overall_score."""
    pairs = found.pairs
    levels = [pairs] if _has_overall(pairs) else [inner for _, inner in pairs if _has_overall(inner)]
    numbers = [(key, _number(value)) for level in levels for key, value in level if snake(key) == _OVERALL]
    if not numbers:
        return None
    key, number = numbers[-1]
    if any(_outcome(other) != _outcome(number) for _, other in numbers):
        return Verdict(None, {}, "unparsable", "overall_score is there twice with different values")
    if number.overall_score is None:
        return number
    notes = [*found.notes, *["wrapper"] * (levels[0] is not pairs), *["key"] * (key != _OVERALL)]
    notes += [number.reason] if number.reason else []
    scores, left_out = _side_scores(levels[-1])
    reason = _sentence("repaired", notes) + _sentence("left out", left_out)
    return Verdict(number.overall_score, scores, "repaired" if notes else "ok", reason.strip())


def _has_overall(value: object) -> bool:
    return isinstance(value, tuple) and any(snake(key) == _OVERALL for key, _ in value)


def _sentence(label: str, parts: list[str]) -> str:
    return f"{label}: {', '.join(parts)}. " if parts else ""


def _side_scores(pairs: _Pairs) -> tuple[dict[str, float], list[str]]:
    scores: dict[str, float] = {}
    left_out = []
    for key, value in pairs:
        name, number = snake(key), _number(value).overall_score
        if not name.endswith("_score") or name == _OVERALL:
            continue
        if number is None or scores.get(name, number) != number:
            scores.pop(name, None)
            left_out.append(name)
        elif name not in left_out:
            scores[name] = number
    return scores, left_out


def _number(value: object) -> Verdict:
    """Read one value as a verdict without other scores; `reason` says what was converted or is wrong."""
    score = number_of(value, maximum=5)
    if score is not None and LOWEST <= score <= HIGHEST:
        return Verdict(float(score), {}, "ok", f"text {_shown(value)}" if isinstance(value, str) else "")
    if score is not None:
        return Verdict(None, {}, "out_of_range", f"overall_score {_shown(value)} is not within 1 to 5")
    return Verdict(None, {}, "unparsable", f"overall_score {_shown(value)} is not one number from 1 to 5")


def _shown(value: object) -> str:
    plain = value is None or isinstance(value, (str, int, float))
    return f"{value!r:.40}" if plain else f"a {type(value).__name__}"
