"""A step back, written any way, fits no beginning of a path or URL."""

import sys
import unicodedata

import pytest

from schemas.standing_rule import ArgumentTest
from services.domain.memory.predicates import fits
from services.domain.plain import is_plain
from services.domain.policy.paths import UnreadablePath, real_path
from services.domain.policy.urls import UnreadableUrl, url_host

BACK = [
    "..",
    "%2e%2e",
    "%2E.",
    "%252e%252e",
    "%c0%ae%c0%ae",
    "%e0%80%ae%e0%80%ae",
    "%uff0e%uff0e",
    "%u002e.",
    "\uff0e\uff0e",
    "\u2024\u2024",
    "\u2025",
    "\u3002\u3002",
    "\uff61.",
    "\ua4fa",
    "\ua4fb.",
    "\U0001d16d\U0001d16d",
    "\ufe52.",
    ".\u200b.",
    ".\u00ad.",
    ".\u2060.",
    ".\ufeff.",
    ".\u034f.",
    ".\ufe0f.",
    ".\u202e.",
    ".\U000e0020.",
    ".\t.",
    ".\x00.",
    ". .",
    ".\u00a0.",
    "..;a=b",
    "...",
    "....",
    ".. .",
    "..\\",
]
SLASH = [
    "/",
    "%2f",
    "%c0%af",
    "%252f",
    "\\",
    "%5c",
    "\uff0f",
    "\u2cc6",
    "\u2215",
    "\u2044",
    "\u29f8",
    "\uff3c",
]


def ways(back: str) -> list[str]:
    """Paths with a step back, by every way to write a slash."""
    longer = "/tmp/a{0}{1}{0}{1}{0}etc"
    return [text for slash in SLASH for text in (f"/tmp/{back}{slash}etc", longer.format(slash, back))]


@pytest.mark.parametrize("back", BACK)
def test_case_36_step_back_written_any_way_fits_no_prefix(back: str) -> None:
    for text in (*ways(back), f"/tmp/{back}"):
        assert not fits({"path": ArgumentTest(prefix="/tmp/")}, {"path": text}), text


@pytest.mark.parametrize("back", BACK)
def test_case_36_step_back_written_any_way_stays_in_no_real_path(back: str) -> None:
    for text in ways(back):
        try:
            found = real_path(text)
        except UnreadablePath:
            continue
        assert not found.startswith("/tmp") or ". ." in found, text


@pytest.mark.parametrize(
    "char", ["\uff0e", "\u3002", "\uff61", "\u2024", "\u00ad", "\u200b", "%2e", "\\", "\uff0f", "\u2215"]
)
def test_case_36_host_with_what_clients_read_differently_is_an_error(char: str) -> None:
    for url in (f"https://good.com{char}evil.com/x", f"https://good{char}com/x"):
        with pytest.raises(UnreadableUrl):
            url_host(url)


def test_case_36_nothing_that_folds_to_a_dot_or_slash_is_plain_of_all_code_points() -> None:
    for code in range(0x80, sys.maxunicode + 1):
        char = chr(code)
        if is_plain(char):
            folded = (
                unicodedata.normalize("NFKC", char) + unicodedata.normalize("NFKD", char) + char.casefold()
            )
            assert not set("./\\%:?#;@ ") & set(folded), hex(code)
            assert unicodedata.category(char)[0] in "LMN", hex(code)
