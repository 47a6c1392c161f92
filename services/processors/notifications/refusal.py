"""The reason why apprise did not deliver a message: what the other side said, without any part of the address.

Apprise gives it only in its log at level DEBUG, which also contains addresses and tokens. So for a mail server its
answer is used; for other services apprise's own sentence and the kind of error, as theirs repeat the address.
"""

import base64
import logging
import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from schemas.display.escape import revealed

REASON_MAX_CHARS = 300
NO_REASON = "apprise could not deliver it, and gave no reason"
LEFT_OUT = "\N{HORIZONTAL ELLIPSIS}"
# Shorter pieces of an address are not secret, and occur in many words.
PIECE_MIN_CHARS = 4

_PIECES = re.compile(r"[/?#&=:@,;<>\s]+")
_RAISED = "Socket Exception: "
# The form in which smtplib's errors print an answer: (550, b'5.1.1 unknown user', 'from@…'), some by recipient.
_ANSWER = re.compile(r"\((\d{3}), b(?P<quote>['\"])(.*?)(?P=quote)(?:, [^()]*)?\)")
_RECIPIENT = re.compile(r"SMTP recipient .* was refused: (\d{3}) b(?P<quote>['\"])(.*)(?P=quote)")
# RFC 5321, 4.2.1: a 5yz answer stays the same if the command is repeated. Those of RFC 4954, 6 are about the sign-in,
# which an operator may repair meanwhile.
_PERMANENT = re.compile(r"5\d\d")
_ABOUT_SIGN_IN = frozenset({"530", "534", "535", "538"})
_SYSTEM_ERROR = re.compile(r"\[(?:SSL: [A-Z0-9_]+|Errno -?\d+)\] [A-Za-z ,-]+")


class Said(NamedTuple):
    """A line of apprise's log."""

    level: str
    message: str


class Secrets:
    """All parts of an apprise address, in every form in which an answer could repeat them."""

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
        """A text without these parts."""
        return self._pattern.sub(LEFT_OUT, text)


def is_permanent(log: Iterable[Said], is_mail: bool) -> bool:
    """True if a mail server said for every recipient that it will never accept the message.

    Args:
        log: as for `reason`.
        is_mail: as for `reason`.
    """
    codes = [code for line in log for code, _ in _answers(line.message)] if is_mail else []
    return bool(codes) and all(_PERMANENT.fullmatch(code) and code not in _ABOUT_SIGN_IN for code in codes)


def reason(log: Iterable[Said], secrets: Secrets, is_mail: bool) -> str:
    """One line of limited length that gives the reason why a message was not accepted.

    Args:
        log: apprise's log of the try.
        secrets: the parts that must not be shown.
        is_mail: True if the address is a mail server's.
    """
    told = [text for line in log if (text := _told(line, is_mail))]
    text = secrets.removed_from("; ".join(dict.fromkeys(told)) or NO_REASON)
    shown = revealed(" ".join(text.split()))
    return shown if len(shown) <= REASON_MAX_CHARS else f"{shown[: REASON_MAX_CHARS - 1]}{LEFT_OUT}"


def _answers(message: str) -> list[tuple[str, str]]:
    """The answers of a mail server in a line of the log, each with its code."""
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
    # A mail server's answer is more informative than apprise's sentence about it.
    is_worth_telling = not is_mail and getattr(logging, line.level, 0) >= logging.WARNING
    return line.message if is_worth_telling else ""
