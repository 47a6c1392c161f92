"""The trace context of W3C: the header `traceparent`, by which the spans of several processes become one trace.

Only version 00 is read, which has a fixed length: what is written into the log stays there for ever. `tracestate` is
not carried, since vendors may add up to 512 characters to it. A trace context on a command is not signed and proves
nothing: a malformed one is ignored, and nothing is decided by it.
"""

import re
from collections.abc import Mapping

TRACEPARENT = "traceparent"
TRACEPARENT_CHARS = 55

_FORM = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)


def is_traceparent(text: str) -> bool:
    """True if a text is a trace context of version 00, with the ids of a trace and a span."""
    return len(text) == TRACEPARENT_CHARS and _FORM.fullmatch(text) is not None


def trace_in(headers: Mapping[str, bytes]) -> str:
    """The trace context in a record's headers; empty without a well-formed one."""
    value = headers.get(TRACEPARENT)
    if value is None or len(value) != TRACEPARENT_CHARS:
        return ""
    text = value.decode("ascii", errors="replace")
    return text if is_traceparent(text) else ""
