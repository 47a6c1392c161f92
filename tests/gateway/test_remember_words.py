"""What `remember` asks for is told in one sentence, by REST and by the decider."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from gateway.bodies import DecideHold
from gateway.problems import invalid
from schemas.standing_rule import RuleRefused, asked_from_text


@pytest.mark.parametrize("bound", [True, "5", {}, []])
def test_bound_that_is_no_number_is_told_with_its_place_and_what_is_allowed(bound: Any) -> None:
    asked = {"arguments": {"int": {"at_least": 1, "at_most": bound}}}

    with pytest.raises(RuleRefused, match=r"^remember: arguments\.int\.at_most: a number is needed here$"):
        asked_from_text(json.dumps(asked))
    with pytest.raises(ValidationError) as refused:
        DecideHold.model_validate({"decision": "approve", "scope": "rule", "remember": asked})

    problem = invalid(refused.value)
    assert problem.detail == "remember.arguments.int.at_most: a number is needed here"
    assert [error["path"] for error in problem.fields["errors"]] == ["remember.arguments.int.at_most"]
