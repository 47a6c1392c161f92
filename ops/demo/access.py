"""Where the demo's Placet is, and the tokens of its three parts: agents, reviewer, operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.identity.issuer import issue
from ops.config import DataDir
from ops.daemon import start_detached
from ops.options import UpOptions
from ops.status import READY, read_stack

TENANT = PROJECT = "default"
TOKEN_TTL_S = 24 * 60 * 60


@dataclass(frozen=True)
class Access:
    """A gateway, and who may do what there.

    Attributes:
        url: of the gateway.
        agents: a token for each agent, good for that agent only.
        reviewer: decides.
        operator: publishes tools and the policy.
        sign_in_url: a link into the console, when there is one.
    """

    url: str
    agents: dict[str, str]
    reviewer: str
    operator: str
    sign_in_url: str | None = None


def with_one_token(url: str, token: str, agents: Sequence[str]) -> Access:
    """A gateway that runs elsewhere, where one token (an admin's) does for all."""
    return Access(url, dict.fromkeys(agents, token), token, token)


def open_stack(directory: DataDir, agents: Sequence[str]) -> tuple[Access, bool]:
    """The stack of a data directory, started when it does not run, and tokens from its own issuer.

    Returns:
        How to get in, and whether it was started here.

    Raises:
        OpsError: it could not be started.
    """
    stack = read_stack(directory)
    started = stack.state != READY
    if started:
        stack = start_detached(UpOptions(directory.root, port=0))
    return Access(
        url=str(stack.url),
        agents={name: _token(directory.keys, name, "agent", name) for name in agents},
        reviewer=_token(directory.keys, "demo-reviewer", "reviewer"),
        operator=_token(directory.keys, "demo-operator", "operator"),
    ), started


def _token(keys: Path, subject: str, role: str, agent: str | None = None) -> str:
    return issue(keys, subject, [role], TENANT, PROJECT, agent, TOKEN_TTL_S)
