"""Last in this package: everything that the kills and the abuse left in the log, before the independent checker."""

from __future__ import annotations

import pytest

from ops.checker import check, read_log
from tests.integration.doors import site_log
from tests.integration.site import Site

pytestmark = [pytest.mark.stack, pytest.mark.broker, pytest.mark.timeout(180)]


async def test_checker_finds_no_violation_after_kills_and_abuse(site: Site) -> None:
    async with site_log(site) as log:
        records = await read_log(log.log)
        violations = check(records, topics=log.log.topics)
    assert sum(map(len, records.values())) > 0
    assert [str(violation) for violation in violations] == []
