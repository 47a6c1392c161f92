"""What is published in a simulated world: tools of every kind, and policies that become stricter and milder."""

from __future__ import annotations

import random
from typing import Any

from schemas.actor import Actor

TENANT, PROJECT = "acme", "main"
OPERATOR = Actor(subject="olga", tenant=TENANT, project=PROJECT, roles=("operator", "reviewer"))
# Publishes for the whole tenant; of another project, what is published counts in that one only.
TENANTS_OPERATOR = Actor(subject="olga", tenant=TENANT, project="*", roles=("operator",))
NEIGHBOUR = Actor(subject="nora", tenant=TENANT, project="side", roles=("admin",))
ROOT = Actor(subject="root", tenant=TENANT, project=PROJECT, roles=("admin",))
RUN_TIMEOUT_S = 20
HOLD_S = 45

TOOLS = (
    "read_file",
    "drop_table",
    "send_money",
    "move_stock",
    "wire_funds",
    "halt_plant",
    "ask_boss",
    "wait_here",
    "retry_mail",
)
# A tool that takes two people; nobody publishes it, so that it is held by its rule from the first.
PAIRED = "split_books"
# Another one, which both may have remembered; it is of some worlds only.
SHARED = "share_books"
# Tools whose approval may be remembered.
REMEMBERED = frozenset({"send_money", "move_stock", SHARED})
# Tools that nobody publishes are held by default.
UNPUBLISHED = "mystery"


def tool(name: str, edition: int = 1) -> dict[str, Any]:
    """A tool's definition; another edition has another version."""
    definition: dict[str, Any] = {
        "name": name,
        "description": f"edition {edition}",
        "run_timeout_seconds": RUN_TIMEOUT_S,
    }
    if name == "retry_mail":
        definition["idempotent"] = True
    if name in REMEMBERED:
        # A call of high risk is never remembered.
        definition["annotations"] = {"destructiveHint": False}
    return definition


def policy(strictness: int, four_eyes: bool = False, names: bool = False) -> dict[str, Any]:
    """The world's policy: 0 lets money go by itself, 1 holds it, 2 holds reading as well, 3 forbids money.

    Where it asks for four eyes, a rule rests until another person activates it. Where it names somebody, that is by
    an account which is taken from its person now and then.
    """
    remember = {"four_eyes": four_eyes, "max_uses": "unlimited"}
    named = {"roles": ["reviewer"], "reviewers": [OLDER]} if names else {}
    money = {0: "allow", 1: "hold", 2: "hold", 3: "deny"}[strictness]
    rules = [
        _rule("reads", "read_*", "hold" if strictness == 2 else "allow", timeout_seconds=HOLD_S),
        _rule("bans", "drop_*", "deny"),
        _rule("payments", "send_*", money, timeout_seconds=HOLD_S, remember=remember, **named),
        _rule("wires", "wire_*", "hold", timeout_seconds=HOLD_S, roles=["treasurer"], exclude_requester=True),
        _rule(
            "moves",
            "move_*",
            "hold",
            timeout_seconds=HOLD_S,
            exclude_requester=True,
            on_reject="rollback",
            remember=remember,
            **named,
        ),
        _rule(
            "shares",
            SHARED,
            "hold",
            timeout_seconds=HOLD_S,
            quorum=2,
            excluded=["olga"],
            remember=remember,
        ),
        _rule("pairs", PAIRED, "hold", timeout_seconds=HOLD_S, quorum=2, excluded=["olga"]),
        _rule(
            "halts", "halt_*", "hold", timeout_seconds=HOLD_S, on_timeout="halt", on_reject="halt", **named
        ),
        _rule("waits", "wait_*", "hold", on_timeout="wait", remind_after_seconds=HOLD_S),
        _rule(
            "escalates",
            "ask_*",
            "hold",
            timeout_seconds=HOLD_S,
            on_timeout="escalate",
            escalate={"after_seconds": HOLD_S / 2, "roles": ["treasurer"]},
            remind_after_seconds=HOLD_S / 4,
        ),
        _rule("retries", "retry_*", "allow"),
    ]
    return {
        "policy": "world",
        "scope": {"tenant": "*"},
        "defaults": {"timeout_seconds": HOLD_S},
        "rules": rules,
    }


# Tess with both of her accounts; the older one is named by a rule, and taken from her now and then.
OLDER = "tess@old"
BOTH_ACCOUNTS: dict[str, Any] = {
    "principal": "tess-t",
    "subjects": ["tess", OLDER],
    "roles": ["treasurer", "reviewer"],
}


def principal(rng: random.Random, takes: bool = False) -> dict[str, Any]:
    """Tess with the roles and accounts that she has for a while."""
    roles = rng.choice((["treasurer", "reviewer"], ["reviewer"], ["analyst"], []))
    return {
        **BOTH_ACCOUNTS,
        "subjects": ["tess"] if takes and roles == ["analyst"] else ["tess", OLDER],
        "roles": roles,
        "disabled": rng.random() < 0.1,
        "agents": ["bot"] if rng.random() < 0.3 else [],
    }


def some_change(
    rng: random.Random, four_eyes: bool = False, names: bool = False
) -> tuple[str, dict[str, Any]]:
    """A definition that an operator might publish next: its kind and its document."""
    if rng.random() < 0.5:
        return "principal", principal(rng, names)
    if rng.random() < 0.5:
        return "policy", policy(rng.randrange(4), four_eyes, names)
    return "tool", tool(rng.choice(TOOLS), rng.randint(1, 3))


def _rule(name: str, pattern: str, then: str, **hold: Any) -> dict[str, Any]:
    rule: dict[str, Any] = {"id": name, "match": {"tools": [pattern]}, "then": then}
    return {**rule, "hold": hold} if then == "hold" else rule
