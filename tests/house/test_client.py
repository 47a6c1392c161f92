"""What may be done to a hold, people can do: by the client, at a terminal, and by what its page says."""

import inspect

import pytest

from gateway.actions import holds
from placet.blocking import Holds
from placet.cli.plugins import OWN
from placet.resources import AsyncHolds
from tests.house.sources import ROOT

VERBS = [verb.name for verb in holds.VERBS]


@pytest.mark.parametrize("name", VERBS)
def test_verb_of_a_hold_is_a_method_and_a_command_and_is_told(name: str) -> None:
    assert inspect.iscoroutinefunction(getattr(AsyncHolds, name, None)), "sdk/src/placet/resources.py"
    assert callable(getattr(Holds, name, None)), "sdk/src/placet/blocking.py"
    assert name in OWN, "sdk/src/placet/cli/plugins.py"
    (methods,) = [
        line
        for line in (ROOT / "docs" / "sdk.md").read_text("utf-8").splitlines()
        if line.startswith("| `placet.holds` |")
    ]
    assert name in methods.replace("`", " ").split(), "docs/sdk.md"
