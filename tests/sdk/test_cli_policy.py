"""`placet policy` on a terminal: what is sent, and what is said of it."""

import json
import re
import time
from pathlib import Path

import pytest

from ops.commands.against import named
from tests.sdk.terminal import EARLY, Terminal


def test_policy_publish_sends_the_document_as_it_is(terminal: Terminal, tmp_path: Path) -> None:
    text = "# ours\npolicy: production   # the name\nrules: []\n"
    (tmp_path / "policy.yaml").write_text(text)
    assert terminal("policy", "publish", str(tmp_path / "policy.yaml")) == 0
    assert "version 3" in terminal.out
    assert "matches no known tool" in terminal.out
    assert terminal.sent("PUT")[0].body.decode() == text


def test_policy_publish_counts_tools_that_nobody_published_and_tells_a_typo_singly(
    terminal: Terminal, tmp_path: Path
) -> None:
    (tmp_path / "policy.yaml").write_text("policy: beginning\n")
    publish = ("policy", "publish", str(tmp_path / "policy.yaml"))
    assert terminal(*publish) == 0
    assert terminal.out.splitlines() == [
        "beginning version 1 is published",
        "! rules[2].match.tools[0]: the pattern 'send_mony' matches no known tool; did you mean 'send_money'?",
        "! 2 rules name tools that are not published yet (6 patterns match none); --verbose lists them",
    ]
    assert terminal(*publish, "--verbose") == 0
    assert len(terminal.out.splitlines()) == 1 + len(EARLY["warnings"])
    assert terminal(*publish, "--json") == 0
    assert json.loads(terminal.out) == EARLY


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rules: []\n", "has no line `policy: NAME`"),
        ("rules: []\nhold:\n  policy: a\n", "has no line `policy: NAME`"),
        ("policy: a\npolicy: b\nrules: []\n", "says `policy: …` 2 times"),
        ('{"policy": "a", "policy": "b"}', "says `policy: …` 2 times"),
        ('policy: "a b"\nrules: []\n', "`policy: a b` is not a name of a policy"),
        ('{"policy": {"policy": "a"}}', "is not a name of a policy"),
        ("policy:\nrules: []\n", "is not a name of a policy"),
    ],
)
def test_policy_publish_of_a_file_without_one_name_says_what_is_wrong(
    text: str, said: str, terminal: Terminal, tmp_path: Path
) -> None:
    (tmp_path / "policy.yaml").write_text(text)
    assert terminal("policy", "publish", str(tmp_path / "policy.yaml")) == 2
    assert said in " ".join(terminal.err.split())
    assert terminal.sent("PUT") == []


@pytest.mark.parametrize(
    "text",
    [
        '{"policy": "again",\n"scope": {"agent": "again-*"},\n"rules": []}\n',
        '{"rules":[{"id":"policy","then":"hold","when":"args.a == \'{, policy: x\'"}],"policy":"again"}',
        '{"policy": "agai\\u006e"}',
        "{policy: again, rules: []}",
        "{ # ours\n  rules: [], 'policy' : 'again', }",
        '"policy": again\nrules: []\n',
        "'policy': 'again'\r\nrules: []\r\n",
        "policy : again\n",
        "policy:again: [x]\npolicy: again\n",
        "\ufeffpolicy: again # ours\n",
        "%YAML 1.1\n# ours\n\n---\npolicy: again\n",
        "--- {policy: again}\n",
        "  policy: again\n  rules: []\n",
        "policy: # ours\n\n  # and\n  again\nrules: []\n",
        "policy: >-\n  again\n",
        "rules:\n- {id: a, then: hold, when: 'true'}\npolicy: again\n",
    ],
)
def test_policy_publish_finds_the_name_wherever_the_first_level_says_it(
    text: str, terminal: Terminal, tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_bytes(text.encode())
    assert terminal("policy", "publish", str(file)) == 0
    (sent,) = terminal.sent("PUT")
    assert (sent.path, named(file.read_text("utf-8"))) == ("/v1/policies/again", "again")


def test_policy_list_and_show_say_what_is_in_force(terminal: Terminal) -> None:
    assert terminal("policy", "list") == 0
    assert "agent billing-*" in terminal.out
    assert terminal("policy", "show", "billing") == 0
    assert "billing version 3 for the whole tenant" in terminal.out
    assert '      "id": "pay",' in terminal.out.splitlines()
    assert "\\u{a}" not in terminal.out


def test_times_are_shown_to_the_second_in_the_terminals_zone(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "JST-9")
    time.tzset()
    try:
        assert terminal("policy", "list") == 0
        assert " 2026-01-05 21:00:00 " in terminal.out
        assert terminal("policy", "show", "billing") == 0
        assert "published 2026-01-05 21:00:00 by olga" in terminal.out.splitlines()[0]
        assert terminal("audit") == 0
        assert re.match(r"2026-\d\d-\d\d \d\d:\d\d:\d\d  ", terminal.out.splitlines()[1])
    finally:
        monkeypatch.undo()
        time.tzset()


def test_policy_publish_says_that_nothing_changed(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("policy: again\n")
    assert terminal("policy", "publish", str(tmp_path / "policy.yaml")) == 0
    assert terminal.out.splitlines() == ["again version 4 says the same already: nothing was published"]


def test_policy_retire_retires_the_version_that_was_shown(terminal: Terminal) -> None:
    assert terminal("policy", "retire", "billing", "--reason", "replaced") == 2
    assert terminal("policy", "retire", "billing", "--reason", "replaced", "--yes") == 0
    (asked,) = terminal.sent()
    assert (asked.path, asked.json()) == (
        "/v1/policies/billing/retire",
        {"version": 3, "reason": "replaced"},
    )
    assert "billing version 3 is no longer in force" in terminal.out


def test_policy_publish_prints_every_warning(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("policy: production\nrules: []\n")
    assert terminal("policy", "publish", str(tmp_path / "policy.yaml")) == 0
    assert "! scope: `support` names the agent and wins as a whole" in terminal.out


def test_policy_publish_of_a_document_without_a_name_is_wrong_usage(
    terminal: Terminal, tmp_path: Path
) -> None:
    (tmp_path / "policy.yaml").write_text("rules: []\n")
    assert terminal("policy", "publish", str(tmp_path / "policy.yaml")) == 2
