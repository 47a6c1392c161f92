from __future__ import annotations

import pytest

from ops.demo.show import POLICY
from ops.demo.suites import Office
from ops.demo.tools import EFFECTS, definitions
from services.domain.policy.cases import CaseResult, parse_cases, run_policy_tests
from tests.policy_documents import check, parse_policy

DEMO = parse_policy(POLICY.read_text())
CASES = parse_cases(POLICY.with_name("demo.tests.yaml").read_text())


def test_effects_name_the_suites_tools_and_no_others(offices: list[Office]) -> None:
    assert set(EFFECTS) == {name for office in offices for name in office.functions}


def test_tools_said_to_read_change_nothing_when_they_run(offices: list[Office]) -> None:
    changed = set()
    for office in offices:
        for task in office.user_tasks:
            job = office.job(task)
            for call in job.truth:
                before = job.environment.model_copy(deep=True)
                job.run(call)
                if EFFECTS[call.tool].reads and not EFFECTS[call.tool].outside and job.environment != before:
                    changed.add(call.tool)
    assert changed == set()


def test_definitions_carry_the_schema_of_the_tools_own_parameters(workspace: Office) -> None:
    sent = definitions(workspace.suite.tools)["send_email"]
    assert sent["inputSchema"]["required"] == ["recipients", "subject", "body"]
    assert sent["annotations"]["openWorldHint"]
    assert not sent["annotations"]["readOnlyHint"]


def test_demo_policy_has_no_problems_and_every_rule_is_tried() -> None:
    assert check(DEMO, tenant="default") == []
    assert {rule.id for rule in DEMO.rules} <= {case.expect.rule for case in CASES.cases}


@pytest.mark.parametrize("result", run_policy_tests(DEMO, CASES), ids=lambda result: result.name)
def test_demo_policy_judges_as_its_cases_say(result: CaseResult) -> None:
    assert result.passed, result.differences
