"""Numbers as papers write them: "8,000", "12 000", "0,5", "3 × 10⁻³", "3.6E+004", "10⁵".

`read` gives the value and `write` puts another value in the same style: separators, decimal mark, raised or
plain exponent with its sign and leading zeros, number of decimals.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Decimal

__all__ = ["BLANK", "NUMBER", "VALUE", "power", "read", "write"]

BLANK = r"[^\S\n]"
_GROUP = rf"(?:,|{BLANK}|['’])"
_THOUSANDS = rf"[1-9]\d{{0,2}}(?:{_GROUP}\d{{3}}){{1,5}}(?!\d)(?:\.\d+)?"
_TEN = r"10(?:\^\{?[-−–+]?\d+\}?|[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)(?!\d)"
_TIMES = rf"{BLANK}?[x×·⋅∙*]{BLANK}?(?:{_TEN}|10[-−–]\d+)|[eE][-−+]?\d+"
_MANTISSA = rf"(?:{_THOUSANDS}|\d{{1,15}}(?:[.,]\d{{1,15}})?)"

# A number as part of another pattern, and one by itself inside a range or a list: there "-" is a sign only
# where no digit stands before it, and what follows "±" is a tolerance, not a value.
NUMBER = rf"[-−]?(?:{_TEN}|{_MANTISSA}(?:{_TIMES})?)"
VALUE = re.compile(
    rf"(?<![\d±])(?<!\d[.,])(?<!±{BLANK})(?P<sign>(?<![\w)])[-−])?"
    rf"(?:(?P<ten>{_TEN})|(?P<mantissa>{_MANTISSA})(?P<times>{_TIMES})?)"
)
_SUPER = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_RAISED = str.maketrans("0123456789-−–+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻⁻⁺")
_LAST = re.compile(r"(?P<sign>[-−–⁻+⁺]?)(?P<digits>\d+|[⁰¹²³⁴⁵⁶⁷⁸⁹]+)\}?$")


def read(match: re.Match[str]) -> Decimal:
    """Return the value of a match of `VALUE`.

    >>> [str(read(VALUE.search(text))) for text in ("8,000", "0,5", "−78", "10⁵", "3 x 10^-3")]
    ['8000', '0.5', '-78', '1E+5', '0.003']
    """
    sign = -1 if match["sign"] else 1
    if match["ten"]:
        return sign * Decimal(1).scaleb(power(match["ten"][2:]))
    value = Decimal(_digits(match))
    return sign * (value.scaleb(power(match["times"])) if match["times"] else value)


def write(match: re.Match[str], value: Decimal, *, shift: int = 0) -> str | None:
    """Write another value in the style of a match of `VALUE`; None where that style cannot hold it.

    `shift` is the power of ten by which the value moved, so that 2.5 becomes 25 and not 25.0.

    >>> write(VALUE.search("8,000"), Decimal(40000)), write(VALUE.search("1 × 10⁻³"), Decimal("0.005"))
    ('40,000', '5 × 10⁻³')
    """
    size, sign = abs(value), match["sign"] or ""
    if match["ten"]:
        new = _with_power(match["ten"], size.adjusted()) if size == Decimal(1).scaleb(size.adjusted()) else None
        return None if new is None else sign + new
    if not match["times"]:
        return sign + _decimal(match, size, shift)
    # One digit before the mark stays one digit; other mantissas keep their exponent.
    exponent = size.adjusted() if 1 <= Decimal(_digits(match)) < 10 else power(match["times"])
    times = _with_power(match["times"], exponent)
    return None if times is None else sign + _decimal(match, size.scaleb(-exponent), 0) + times


def power(exponent: str) -> int:
    """Return the power that an exponent such as "^{-3}", "⁻³" or "E+004" ends with."""
    found = _LAST.search(exponent)
    if found is None:
        raise ValueError(f"{exponent!r} ends with no power")
    return int(found["digits"].translate(_SUPER)) * (-1 if found["sign"] in tuple("-−–⁻") else 1)


def _with_power(exponent: str, new: int) -> str | None:
    found = _LAST.search(exponent)
    if found is None:
        return None
    digits, sign = found["digits"].translate(_SUPER), found["sign"]
    raised = digits != found["digits"]
    if new >= 0 and not raised and exponent[: found.start()].endswith("10"):
        return None  # "10-3" without its minus sign would be read as 103
    keeps = sign in (tuple("-−–⁻") if new < 0 else tuple("+⁺"))
    sign = sign if keeps else "-" if new < 0 else ""
    written = sign + str(abs(new)).zfill(len(digits) if digits[0] == "0" else 1)
    return (
        exponent[: found.start()]
        + (written.translate(_RAISED) if raised else written)
        + found[0][len(found["sign"] + digits) :]
    )


def _digits(match: re.Match[str]) -> str:
    """Return the mantissa in plain digits: without separators, with a point."""
    mantissa: str = match["mantissa"]
    return re.sub(_GROUP, "", mantissa) if re.fullmatch(_THOUSANDS, mantissa) else mantissa.replace(",", ".")


def _decimal(match: re.Match[str], value: Decimal, shift: int) -> str:
    if value == 0:
        return str(match["mantissa"])
    whole, _, rest = f"{_rounded(_digits(match), value, shift):f}".partition(".")
    grouped = re.fullmatch(_THOUSANDS, match["mantissa"])
    group = re.search(_GROUP, match["mantissa"]) if grouped else None
    # 4 000 is written with a blank by some, 40 000 by all.
    if group and len(whole) > (3 if group[0] == "," or len(_digits(match).partition(".")[0]) == 4 else 4):
        whole = f"{int(whole):,}".replace(",", group[0])
    mark = "," if "," in match["mantissa"] and not grouped else "."
    return whole + (mark + rest if rest else "")


def _rounded(digits: str, value: Decimal, shift: int) -> Decimal:
    """Round to the decimals of `digits`, more where the value needs them, at most to its significant digits."""
    shortest = max(0, len(digits.partition(".")[2]) - max(0, shift))
    significant = max(4, len(digits.replace(".", "").lstrip("0")))
    longest = max(shortest, significant - 1 - value.adjusted())
    exact = -int(value.normalize().as_tuple().exponent)
    return value.quantize(Decimal(1).scaleb(-min(max(exact, shortest), longest)), ROUND_HALF_EVEN)
