"""Why apprise did not deliver a message: what the other side said, without anything of the address.

Apprise tells of it only in its log, at the level DEBUG, where addresses and tokens stand as well. So of a mail server
its answer is taken; of other services apprise's own sentence and the kind of error, as theirs repeat the address.
"""

import base64
import logging
import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from schemas.display.escape import revealed

REASON_MAX_CHARS = 300
NO_REASON = "apprise could not deliver it, and does not say why"
LEFT_OUT = "\N{HORIZONTAL ELLIPSIS}"
# Shorter pieces of an address are no secret, and stand in many words.
PIECE_MIN_CHARS = 4

_PIECES = re.compile(r"[/?#&=:@,;<>\s]+")
_RAISED = "Socket Exception: "
# As smtplib's errors print an answer: (550, b'5.1.1 unknown user', 'from@…'), some of them by recipient.
_ANSWER = re.compile(r"\((\d{3}), b(?P<quote>['\"])(.*?)(?P=quote)(?:, [^()]*)?\)")
_RECIPIENT = re.compile(r"SMTP recipient .* was refused: (\d{3}) b(?P<quote>['\"])(.*)(?P=quote)")
# RFC 5321, 4.2.1: a 5yz answer stays the same when it is asked for again. Those of RFC 4954, 6 are about the sign-in,
# which an operator may mend meanwhile.
_PERMANENT = re.compile(r"5\d\d")
_ABOUT_SIGN_IN = frozenset({"530", "534", "535", "538"})
_SYSTEM_ERROR = re.compile(r"\[(?:SSL: [A-Z0-9_]+|Errno -?\d+)\] [A-Za-z ,-]+")


class Said(NamedTuple):
    """A line of apprise's log."""

    level: str
    message: str


class Secrets:
    """Whatever stands in an address of apprise, in every way in which an answer could repeat it."""

    def __init__(self, url: str) -> None:
        """Prepare it.

        Args:
            url: the address.
        """
        parts = urlsplit(url)
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        behind = url.partition("://")[2]
        found = {piece for piece in _PIECES.split(behind) if len(piece) >= PIECE_MIN_CHARS}
        found |= {unquote(piece) for piece in found}
        found |= {
            text for text in re.split(r"[/?&#]|\b\w+=", unquote(behind)) if len(text) >= PIECE_MIN_CHARS
        }
        found |= {user, password, parts.password or ""}
        for login in (user, password, f"\0{user}\0{password}"):
            found.add(base64.b64encode(login.encode()).decode())
        longest_first = sorted(filter(None, found), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)", re.IGNORECASE)

    def removed_from(self, text: str) -> str:
        """A text without them."""
        return self._pattern.sub(LEFT_OUT, text)


def is_permanent(log: Iterable[Said], is_mail: bool) -> bool:
    """Whether a mail server said of every recipient that it will never take the message.

    Args:
        log: as for `reason`.
        is_mail: likewise.
    """
    codes = [code for line in log for code, _ in _answers(line.message)] if is_mail else []
    return bool(codes) and all(_PERMANENT.fullmatch(code) and code not in _ABOUT_SIGN_IN for code in codes)


def reason(log: Iterable[Said], secrets: Secrets, is_mail: bool) -> str:
    """One bounded line that says why a message was not taken.

    Args:
        log: what apprise logged in the try.
        secrets: what may not be shown.
        is_mail: whether the address is one of a mail server.
    """
    told = [text for line in log if (text := _told(line, is_mail))]
    text = secrets.removed_from("; ".join(dict.fromkeys(told)) or NO_REASON)
    shown = revealed(" ".join(text.split()))
    return shown if len(shown) <= REASON_MAX_CHARS else f"{shown[: REASON_MAX_CHARS - 1]}{LEFT_OUT}"


def _answers(message: str) -> list[tuple[str, str]]:
    """The answers of a mail server in a line, each with its code."""
    if refused := _RECIPIENT.fullmatch(message):
        return [(refused[1], refused[3])]
    if message.startswith(_RAISED):
        return [(found[1], found[3]) for found in _ANSWER.finditer(message)]
    return []


def _told(line: Said, is_mail: bool) -> str:
    if line.message.startswith(_RAISED) and not is_mail:
        found = _SYSTEM_ERROR.search(line.message.removeprefix(_RAISED))
        return found[0].strip() if found else ""
    if answers := _answers(line.message):
        return "; ".join(f"{code} {text}" for code, text in answers)
    if line.message.startswith(_RAISED):
        return line.message.removeprefix(_RAISED)
    # A mail server's answer says more than apprise's sentence about it.
    is_worth_telling = not is_mail and getattr(logging, line.level, 0) >= logging.WARNING
    return line.message if is_worth_telling else ""
