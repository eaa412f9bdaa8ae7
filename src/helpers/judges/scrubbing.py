"""What a server said, made fit to keep and to show: without the key that it may echo, and errors on one line."""

from __future__ import annotations

import html
import re

from helpers.judges.reading import Exchange

__all__ = ["LONGEST_MESSAGE", "finished", "one_line", "spellings"]

LONGEST_MESSAGE = 300
SHORTEST_SECRET = 8  # a shorter one is a placeholder, and may be an ordinary word


def spellings(secret: str) -> re.Pattern[str] | None:
    r"""Return what matches a key however each of its characters is spelled, or None for a key too short to look for.

    Known are JSON and Python escapes, percent signs and HTML entities, mixed and nested a few levels deep, and the
    zeros of UTF-16 read as UTF-8.

    >>> spellings("sk-1234/").sub("***", r"?key=sk%2D1234%2F or \u0073k-1234\/ or sk-1234&#x2f;")
    '?key=*** or *** or ***'
    """
    return re.compile("\0{0,3}".join(map(_spelled, secret))) if len(secret) >= SHORTEST_SECRET else None


def _spelled(letter: str) -> str:
    code = ord(letter)
    number = "".join(digit if digit.isdigit() else f"[{digit}{digit.upper()}]" for digit in f"{code:02x}")
    # All begin with a plain character, which `re` skips to, and none repeats without end, which would take for ever.
    ways = [
        rf"\\\\{{0,31}}(?:[uU](?:0{{2}}|0{{6}}|\{{0{{0,6}})|x){number}\}}?",
        rf"%(?:25){{0,4}}{number}",
        rf"&(?:amp;){{0,4}}#(?:0{{0,6}}{code}|[xX]0{{0,6}}{number});",
        re.escape(html.escape(letter)),
        re.escape(letter),
    ]
    if not letter.isalnum():
        ways.append(rf"\\\\{{0,31}}{re.escape(letter)}")
    return f"(?:{'|'.join(ways)})"


def finished(exchange: Exchange, secret: re.Pattern[str] | None = None) -> Exchange:
    """Blank out the key in every text of an exchange, and then make its message one short line.

    >>> finished(Exchange("auth", "bad key\\n sk-12345678"), spellings("sk-12345678")).message
    'bad key ***'
    """
    if secret is not None:
        exchange = Exchange._make(secret.sub("***", part) if isinstance(part, str) else part for part in exchange)
    return exchange._replace(message=one_line(exchange.message))


def one_line(text: str) -> str:
    """Return a text without line breaks, control characters and whatever else does not print, cut to 300 characters.

    >>> one_line("no\\r\\n  such\\x1b[31m model")
    'no such [31m model'
    """
    # More would not be shown, and a whole page takes a while.
    shown = "".join(letter if letter.isprintable() else " " for letter in text[: 10 * LONGEST_MESSAGE])
    line = " ".join(shown.split())
    return line if len(line) <= LONGEST_MESSAGE else f"{line[: LONGEST_MESSAGE - 1]}…"
