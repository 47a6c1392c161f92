"""Ask a probe, for a container's health check: exit code 0 when it answers 200, else 1 with what it said.

python -m ops.probe http://127.0.0.1:9460/readyz
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

ANSWER_WITHIN_S = 5.0
SAID_MAX = 500


def ask(url: str) -> tuple[int, str]:
    """The status of an address, and the beginning of what it says; 0 where nobody answers."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port or 80, timeout=ANSWER_WITHIN_S)
    try:
        connection.request("GET", parts.path or "/")
        answer = connection.getresponse()
        return answer.status, answer.read(SAID_MAX).decode(errors="replace")
    except (OSError, HTTPException) as error:
        return 0, f"{url} does not answer ({error!r})"
    finally:
        connection.close()


def main(arguments: Sequence[str]) -> int:
    """Ask each address; returns the exit code."""
    answers = [ask(url) for url in arguments]
    for status, said in answers:
        if status != 200:
            sys.stderr.write(f"{said}\n")
    return int(not answers or any(status != 200 for status, _ in answers))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
