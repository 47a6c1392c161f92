"""Test vectors of audit leaves for verifiers elsewhere: `python -m tests.golden.audit_leaves` writes them once.

The preimage is put together here by hand, from the words of docs/audit.md, and not with the code that is tested.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "audit_leaves.json"


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def vectors() -> list[dict[str, Any]]:
    """Records, and their leaves in hex."""
    plain = (
        b"\x97"
        b"\xb4placet.audit-leaf.v1"
        b"\xaaexecutions"
        b"\x03"
        b"\xcd\x01\x2c"
        b"\xc4\x0dacme/main/run"
        b"\x92"
        + (b"\x92" + b"\xa5ce_id" + b"\xc4\x02e1")
        + (b"\x92" + b"\xbeplacet_header_with_a_long_name" + b"\xc4\x00")
        + b"\xc4\x05\x00\x00\x00\x00\x07"
    )
    large = (
        b"\x97"
        b"\xb4placet.audit-leaf.v1"
        b"\xabdefinitions"
        b"\x00"
        b"\xcf\x00\x00\x00\x01\x00\x00\x00\x00"
        b"\xc4\x04a/b/"
        b"\x90" + (b"\xc5\x01\x00" + b"x" * 256)
    )
    return [
        {
            "name": "plain",
            "record": {
                "topic": "executions",
                "partition": 3,
                "offset": 300,
                "key": _b64(b"acme/main/run"),
                "headers": [["ce_id", _b64(b"e1")], ["placet_header_with_a_long_name", ""]],
                "value": _b64(b"\x00\x00\x00\x00\x07"),
            },
            "leaf": hashlib.sha256(b"\x00" + plain).hexdigest(),
        },
        {
            "name": "large",
            "record": {
                "topic": "definitions",
                "partition": 0,
                "offset": 2**32,
                "key": _b64(b"a/b/"),
                "headers": [],
                "value": _b64(b"x" * 256),
            },
            "leaf": hashlib.sha256(b"\x00" + large).hexdigest(),
        },
    ]


if __name__ == "__main__":
    if FILE.exists():
        raise SystemExit(f"{FILE} is there already and stays as it is.")
    FILE.write_text(json.dumps(vectors(), indent=1) + "\n", encoding="utf-8")
