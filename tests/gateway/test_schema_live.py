"""The OpenAPI document is true: what it says of every route holds for whatever a generator makes of it."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from gateway.app import routed_app
from gateway.docs_gen.openapi import openapi_document
from tests.gateway.conftest import Doors

pytestmark = [pytest.mark.stack, pytest.mark.broker, pytest.mark.timeout(300)]
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)


document = schemathesis.openapi.from_dict(openapi_document(routed_app()))


def test_the_document_served_is_the_one_checked(doors: Doors) -> None:
    assert doors.client.get(f"{doors.url}/openapi.json").json() == document.raw_schema


# The stream does not end, so there is no answer of it to look at.
@document.exclude(path="/v1/events/stream").parametrize()
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_route_answers_as_documented(case: Any, doors: Doors) -> None:
    headers = {"Authorization": f"Bearer {doors.token('root', 'admin', tenant='fuzz')}"}
    case.call_and_validate(base_url=doors.url, headers=headers, checks=CHECKS, timeout=30)
