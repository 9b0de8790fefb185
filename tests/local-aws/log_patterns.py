"""Filter patterns of CloudWatch Logs: terms and phrases, no JSON, no columns, no regular expressions."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from moto.logs.exceptions import InvalidParameterException

TERM = re.compile(r'\s*([-?]?)("(?:[^"\\]|\\.)*"|[^\s"]+)(?=\s|$)')
ESCAPED = re.compile(r"\\(.)")

# AWS wants everything else in double quotes.
PLAIN_TERM = re.compile(r"^\w+$")


@dataclass
class Term:
    sign: str  # "": must occur, "-": must not, "?": one of these must
    text: str


def matcher(pattern: str | None) -> Callable[[str], bool]:
    """Whether a message passes; upper and lower case differ, and no pattern passes everything.

    Raises NotImplementedError for a pattern that AWS may know and this does not.
    """
    pattern = (pattern or "").strip()
    if pattern.startswith(("{", "[", "%")):
        raise NotImplementedError(f"filter pattern {pattern}")
    terms = _terms(pattern)
    any_of = [term.text for term in terms if term.sign == "?"]
    if any_of and len(any_of) < len(terms):
        raise NotImplementedError(f"filter pattern {pattern}: ? beside other terms")
    all_of = [term.text for term in terms if term.sign == ""]
    none_of = [term.text for term in terms if term.sign == "-"]

    def passes(message: str) -> bool:
        if any_of:
            return any(text in message for text in any_of)
        return all(text in message for text in all_of) and not any(text in message for text in none_of)

    return passes


def _terms(pattern: str) -> list[Term]:
    terms, position = [], 0
    while position < len(pattern):
        found = TERM.match(pattern, position)
        if not found:
            raise InvalidParameterException("Invalid filter pattern")
        terms.append(Term(found.group(1), _text(found.group(2))))
        position = found.end()
    return terms


def _text(written: str) -> str:
    if written.startswith('"') and len(written) > 2:
        return ESCAPED.sub(r"\1", written[1:-1])
    if not PLAIN_TERM.match(written):
        raise InvalidParameterException(f"Invalid character(s) in term '{written}'")
    return written
