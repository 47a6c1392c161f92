"""docs/hitl/api-reference.md says of every refusal which status it has over gRPC."""

from __future__ import annotations

import re

from gateway.rpc.statuses import status_of
from schemas.refusals import Refusal
from tests.house.sources import ROOT

ROW = re.compile(r"^\| (?P<codes>`.*?) \| `(?P<status>[A-Z_]+)` \|$", re.M)


def test_page_names_the_status_of_every_refusal() -> None:
    page = (ROOT / "docs/hitl/api-reference.md").read_text("utf-8")
    told = {
        code: row["status"] for row in ROW.finditer(page) for code in re.findall(r"`([a-z_]+)`", row["codes"])
    }
    assert set(told) <= set(Refusal)
    assert {code: status_of(code).name for code in told} == told
    others = set(Refusal) - set(told)
    assert {status_of(code).name for code in others} == {"FAILED_PRECONDITION"}
