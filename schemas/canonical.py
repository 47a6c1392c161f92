"""Strict JSON for every API, RFC 8785 canonical JSON, and the digests made of it.

Python's own reader accepts duplicate keys, NaN, 1e400 and lone surrogates. None of them has one canonical
form, so all are refused here, before anything is digested.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from json.encoder import encode_basestring
from typing import Any, NoReturn

from schemas.limits import JSON_MAX_DEPTH

MAX_SAFE_INTEGER = 2**53 - 1
# From this number on, ECMAScript, and so RFC 8785, writes an exponent.
FIRST_EXPONENT = 1e21
# 1e-6 is the least power of ten that it writes without an exponent.
LAST_PLAIN_POWER = -6
KEY_SHOWN_MAX_CHARS = 60

_KEYS = "object keys must be strings"
_BEYOND = "beyond ±(2^53 − 1): send it as a string"


class MalformedJson(ValueError):
    """The text is not JSON that has one canonical form; the message says what to correct."""


class TooDeep(MalformedJson):
    """Objects and arrays are nested deeper than the limit."""

    def __init__(self) -> None:
        super().__init__(f"nested deeper than {JSON_MAX_DEPTH} levels")


def parse_strict(text: str | bytes) -> Any:
    """Parse unambiguous JSON, including that of facts recorded before 1e21 was refused.

    Args:
        text: JSON text; bytes must be UTF-8 without a byte order mark.

    Returns:
        The parsed value; its canonical form parses to the same value again.

    Raises:
        MalformedJson: duplicate keys, NaN or Infinity, a number out of range, an integer beyond ±(2^53 − 1) whose
            canonical form has no exponent, a lone surrogate, or not JSON at all.
        TooDeep: nesting beyond 64 levels.
    """
    return _parsed(text, _STRICT)


def parse_new(text: str | bytes) -> Any:
    """Parse JSON of a new request: as `parse_strict`, and no integer beyond ±(2^53 − 1) however it is written.

    Raises:
        MalformedJson: as `parse_strict`; also for 1e21 and all beyond it, which are integers like 1e20.
        TooDeep: nesting beyond 64 levels.
    """
    return _parsed(text, _NEW)


def _parsed(text: str | bytes, decoder: json.JSONDecoder) -> Any:
    try:
        # json.loads would guess UTF-16 and UTF-32 from bytes, and accept encoded surrogates.
        text = text if isinstance(text, str) else text.decode()
        value = decoder.decode(text)
    except MalformedJson:
        raise
    except RecursionError as error:
        raise TooDeep from error
    except ValueError as error:
        raise MalformedJson(f"not valid JSON: {error}") from error
    _no_surrogates(text)
    # The reader's hooks checked every number and key; only depth and escaped surrogates remain to be checked.
    if text.count("[") + text.count("{") > JSON_MAX_DEPTH:
        _check_levels(value)
    if "\\ud" in text or "\\uD" in text:
        _no_surrogates("".join(_texts(value)))
    return value


def check_value(value: Any, depth: int = 0) -> None:
    """Refuse a parsed value that has no canonical form.

    Args:
        value: the result of a JSON reader.
        depth: the number of objects and arrays around the value.

    Raises:
        MalformedJson: see `parse_strict`.
    """
    if isinstance(value, str):
        _no_surrogates(value)
    elif isinstance(value, dict):
        _check_depth(depth)
        for key, item in value.items():
            if not isinstance(key, str):
                raise MalformedJson(_KEYS)
            _no_surrogates(key)
            check_value(item, depth + 1)
    elif isinstance(value, list | tuple):
        _check_depth(depth)
        for item in value:
            check_value(item, depth + 1)
    else:
        _check_scalar(value)


def canonical(value: Any) -> str:
    """The RFC 8785 canonical JSON of a value.

    Raises:
        MalformedJson: the value has no canonical form; see `parse_strict`.
    """
    text = _write(value, 0)
    _no_surrogates(text)
    return text


def sha256_hex(text: str | bytes) -> str:
    """SHA-256 as 64 hex characters."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def call_digest(tenant: str, agent: str, tool: str, tool_version: str, arguments: str) -> str:
    """The digest that an approval binds to.

    SHA-256 of RFC 8785 JSON over {tenant, agent, tool, tool_version, arguments}.

    Args:
        tenant: the token's tenant.
        agent: the agent that proposes the call.
        tool: the tool's name.
        tool_version: SHA-256 of its canonical definition; empty for an unknown tool.
        arguments: canonical JSON.

    Raises:
        MalformedJson: a name has a lone surrogate.
    """
    # The keys are in RFC 8785's order and `arguments` is canonical, so no second pass over it is needed.
    text = (
        f'{{"agent":{encode_basestring(agent)},"arguments":{arguments},"tenant":{encode_basestring(tenant)},'
        f'"tool":{encode_basestring(tool)},"tool_version":{encode_basestring(tool_version)}}}'
    )
    _no_surrogates(text)
    return sha256_hex(text)


def tool_version_of(definition: Mapping[str, Any]) -> str:
    """SHA-256 of the RFC 8785 form of a tool's definition."""
    return sha256_hex(canonical(dict(definition)))


def _write(value: Any, depth: int) -> str:
    if type(value) is int and -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        return repr(value)
    if isinstance(value, str):
        return encode_basestring(value)  # its escapes are exactly RFC 8785's
    if isinstance(value, float):
        _check_float(value)
        return _write_float(value)
    if isinstance(value, dict):
        return _write_object(value, depth)
    if isinstance(value, list | tuple):
        _check_depth(depth)
        return f"[{','.join([_write(item, depth + 1) for item in value])}]"
    _check_scalar(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return int.__repr__(value)


def _write_float(value: float) -> str:
    # Python and ECMAScript both write the shortest digits that round-trip. They differ in the sign of zero, and in
    # the numbers that have an exponent.
    if value == 0:
        return "0"
    text = float.__repr__(value)
    return _with_exponent(text) if "e" in text else text.removesuffix(".0")


def _with_exponent(text: str) -> str:
    """An RFC 8785 number from Python's form with an exponent; numbers from 1e16 to 1e21 never get here."""
    mantissa, _, exponent = text.partition("e")
    power = int(exponent)
    if power < LAST_PLAIN_POWER or power > 0:
        return f"{mantissa}e{power:+d}"
    sign = "-" if mantissa.startswith("-") else ""
    return f"{sign}0.{'0' * (-power - 1)}{mantissa.lstrip('-').replace('.', '')}"


def _write_object(value: dict[str, Any], depth: int) -> str:
    _check_depth(depth)
    try:
        keys = sorted(value, key=None if all(map(str.isascii, value)) else _utf16)
    except TypeError as error:
        raise MalformedJson(_KEYS) from error
    return f"{{{','.join([f'{encode_basestring(key)}:{_write(value[key], depth + 1)}' for key in keys])}}}"


def _utf16(key: str) -> bytes:
    """The order of RFC 8785, section 3.2.3: by UTF-16 code units."""
    return key.encode("utf-16-be", "surrogatepass")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        repeated = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise MalformedJson(f"an object has the same key twice: {json.dumps(repeated[:KEY_SHOWN_MAX_CHARS])}")
    return found


def _no_constant(name: str) -> NoReturn:
    raise MalformedJson(f"{name} is not JSON")


def _exact(text: str) -> float:
    number = float(text)
    _check_float(number)
    return number


def _exact_and_safe(text: str) -> float:
    number = _exact(text)
    if abs(number) > MAX_SAFE_INTEGER:
        raise MalformedJson(f"an integer is {_BEYOND}")
    return number


def _safe_integer(text: str) -> int:
    # Most have fewer digits than 2^53.
    if len(text) < 16:
        return int(text)
    # Checked by length first: int() on a long run of digits is quadratic.
    if len(text) > 17 or abs(int(text)) > MAX_SAFE_INTEGER:
        raise MalformedJson(f"an integer is {_BEYOND}")
    return int(text)


def _check_depth(depth: int) -> None:
    if depth >= JSON_MAX_DEPTH:
        raise TooDeep


def _check_levels(value: Any) -> None:
    """Refuse a parsed value that is too deep: level by level, which is much cheaper than a call for each value."""
    level = _containers([value])
    for _ in range(JSON_MAX_DEPTH):
        if not level:
            return
        level = [part for one in level for part in _containers(one.values() if type(one) is dict else one)]
    if level:
        raise TooDeep


def _containers(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if type(value) is dict or type(value) is list]


def _texts(value: Any) -> Iterator[str]:
    """Every text and key in a parsed value."""
    pending = [value]
    while pending:
        one = pending.pop()
        if type(one) is str:
            yield one
        elif type(one) is dict:
            yield from one
            pending += one.values()
        elif type(one) is list:
            pending += one


def _no_surrogates(text: str) -> None:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise MalformedJson("a string has a lone surrogate") from error


def _check_scalar(value: Any) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            raise MalformedJson(f"an integer is {_BEYOND}")
    elif isinstance(value, float):
        _check_float(value)
    else:
        raise MalformedJson(f"{type(value).__name__} is not a JSON value")


def _check_float(value: float) -> None:
    if not math.isfinite(value):
        raise MalformedJson("a number is out of range")
    # Canonical JSON writes such a float as an integer, which `parse_strict` would then refuse.
    if MAX_SAFE_INTEGER < abs(value) < FIRST_EXPONENT:
        raise MalformedJson(f"an integer is {_BEYOND}")


_STRICT = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_exact, parse_int=_safe_integer
)
_NEW = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_constant=_no_constant,
    parse_float=_exact_and_safe,
    parse_int=_safe_integer,
)


def as_json(text: str) -> str:
    """A JSON text unchanged, any other text as a JSON string: defaults of earlier holds are of both kinds."""
    try:
        parse_strict(text)
    except MalformedJson:
        return canonical(text)
    return text
