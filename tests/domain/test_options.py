"""Options that are refused, since a person could not tell one answer from another."""

import pytest

from schemas import commands as k
from tests.domain.steps import code, started
from tests.domain.world import BOT, names, the


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ('[{"label":"Staging"},{"id":"production"}]', "an object with an id"),
        ("[null]", "an object with an id"),
        ('[["a"]]', "an object with an id"),
        ('[{"id":"a"},"a"]', "two have the same id"),
        ('[1,"1"]', "written the same"),
        ('[{"id":true},"true"]', "written the same"),
        ('["a"," "]', "not blank"),
        ('[{"id":"\\t"}]', "not blank"),
        ('["a","\\u200b"]', "not blank"),
        ('["a","a\\u200b"]', "look the same"),
        ('["a b","a\\u00a0 b "]', "look the same"),
        ('["\\u00e1","a\\u0301"]', "look the same"),
    ],
)
def test_request_with_options_that_no_answer_could_name_is_refused(options: str, why: str) -> None:
    world = started()

    said = world.ask(
        k.RequestHumanInput(request_id="q", kind="decision", question="Which?", options=options), BOT
    )

    assert code(said) == "invalid"
    detail = the(said, "CommandRefused").detail
    assert detail.startswith("options: ")
    assert why in detail


@pytest.mark.parametrize("options", ['["a b","ab"]', '["km\\u00b2","km2"]', '["a","A"]', '["1","\\u2460"]'])
def test_request_with_options_that_look_different_is_asked(options: str) -> None:
    command = k.RequestHumanInput(request_id="q", kind="decision", question="Which?", options=options)
    assert names(started().ask(command, BOT))[0] == "HumanInputRequested"


def test_request_as_deep_as_json_can_be_is_asked() -> None:
    deep = "[" * 64 + "]" * 64
    command = k.RequestHumanInput(request_id="q", kind="clarification", question="?", fields=deep)
    assert names(started().ask(command, BOT)) == ["HumanInputRequested", "HoldOpened"]


@pytest.mark.parametrize(
    "options",
    [
        *('["true"]', "[false]", '["always","No"]', '[{"id":"false","label":"No"}]'),
        *(
            '[{"id":"go","label":"no"}]',
            '[{"id":"stop","label":" YES\u200b"}]',
            '["\uff34\uff32\uff35\uff25"]',
            '["no\u200b"]',
        ),
    ],
)
def test_permission_with_options_written_like_its_own_answers_is_refused(options: str) -> None:
    world = started()
    command = k.RequestHumanInput(request_id="q", kind="permission", question="May I?", options=options)

    refused = the(world.ask(command, BOT), "CommandRefused")
    assert (refused.code, refused.detail.partition(": ")[0]) == ("invalid", "options")
    assert names(world.ask(command.model_copy(update={"kind": "decision"}), BOT))[0] == "HumanInputRequested"
