"""Policy documents as tests write them: read from YAML, and checked as a whole."""

from __future__ import annotations

import json
from collections.abc import Collection

from schemas.policy_document import PolicyDocument, policy_from_value, policy_to_json
from schemas.policy_problems import Problem
from schemas.policy_yaml import policy_value
from services.domain.policy.check import check_value


def parse_policy(text: str) -> PolicyDocument:
    """Read a document; raises PolicyRefused with every problem of form."""
    return policy_from_value(policy_value(text))


def check(
    document: PolicyDocument, known_tools: Collection[str] | None = None, tenant: str | None = None
) -> list[Problem]:
    """The errors and warnings of a document of valid form; arguments as of `check_value`."""
    return check_value(json.loads(policy_to_json(document)), known_tools, tenant)[1]
