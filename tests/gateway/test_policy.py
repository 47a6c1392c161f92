from __future__ import annotations

from pathlib import Path

import pytest

from gateway.policy import GatewayPolicy, load_gateway_policy
from gateway.problems import Problem
from host.errors import SettingsRefused


def _load(tmp_path: Path, text: str) -> GatewayPolicy:
    path = tmp_path / "gateway.yaml"
    path.write_text(text)
    return load_gateway_policy(path)


def test_load_no_file_tightens_nothing() -> None:
    policy = load_gateway_policy(None)
    policy.check("anything")
    assert policy.claims("anything", {"readOnlyHint": True}) == {"readOnlyHint": True}


def test_deny_refuses_what_matches(tmp_path: Path) -> None:
    policy = _load(tmp_path, "deny: ['shell_*']")
    policy.check("read_file")
    with pytest.raises(Problem) as caught:
        policy.check("shell_run")
    assert caught.value.status == 403


def test_raise_adds_a_claim_and_takes_none(tmp_path: Path) -> None:
    policy = _load(tmp_path, "raise: ['http_*']")
    assert policy.claims("http_post", {"readOnlyHint": True, "destructiveHint": False}) == {
        "readOnlyHint": True,
        "destructiveHint": True,
    }
    assert policy.claims("read_file", {}) == {}


@pytest.mark.parametrize(
    "text",
    [
        "allow: ['*']",
        "deny: shell",
        "deny: [1]",
        "deny: ['']",
        "raise: {a: b}",
        "- deny",
        "deny: ['a']\ndeny: ['b']",
        "deny: [",
        "denny: ['a']",
    ],
)
def test_load_anything_else_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsRefused):
        _load(tmp_path, text)


def test_load_missing_file_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsRefused):
        load_gateway_policy(tmp_path / "missing.yaml")
