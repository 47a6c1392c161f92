"""International bank account numbers: how long those of each country are, and their check digits (ISO 13616)."""

import re
import string
from functools import lru_cache

# The IBAN Registry of SWIFT.
_LENGTHS_OF_COUNTRIES = """
    AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24
    FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32
    LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24
    RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30
"""
_LENGTHS = {one[:2]: int(one[2:]) for one in _LENGTHS_OF_COUNTRIES.split()}
_VALUES = {one: str(int(one, 36)) for one in string.digits + string.ascii_uppercase}


def is_iban(code: str) -> bool:
    """True for the letters and digits of an IBAN, in capitals and without spaces."""
    return _LENGTHS.get(code[:2]) == len(code) and _has_right_digits(code)


def _has_right_digits(code: str) -> bool:
    """True if the check digits are right (ISO 7064: letters count from 10, what it begins with comes last)."""
    return int("".join([_VALUES[one] for one in code[4:] + code[:4]])) % 97 == 1


def iban_at(text: str, start: int) -> tuple[str, int]:
    """The IBAN that begins at a place of a text in capitals, and where it ends; empty if none does.

    Whatever is no letter or digit may stand between its characters, and whatever may follow it.
    """
    length = _LENGTHS.get(text[start : start + 2])
    found = length and _pattern(length).match(text, start)
    compact = "".join(filter(str.isalnum, found.group())) if found else ""
    return (compact, found.end()) if found and _has_right_digits(compact) else ("", start)


@lru_cache
def _pattern(length: int) -> re.Pattern[str]:
    return re.compile(rf"(?:(?:[^\w\x00]|_)*+[A-Z0-9]){{{length}}}")
