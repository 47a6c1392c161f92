"""Where the demo's Placet is, and the tokens of its three parts: agents, reviewer, operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.identity.issuer import issue
from ops.config import DataDir
from ops.files import write_text

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
        reviewer_file: where the reviewer's token is, for another terminal; None where nobody wrote it.
    """

    url: str
    agents: dict[str, str]
    reviewer: str
    operator: str
    reviewer_file: Path | None = None


def with_one_token(url: str, token: str, agents: Sequence[str]) -> Access:
    """A gateway that runs elsewhere, where one token (an admin's) does for all."""
    return Access(url, dict.fromkeys(agents, token), token, token)


def with_own_tokens(url: str, directory: DataDir, agents: Sequence[str]) -> Access:
    """The stack of a data directory, and tokens from its own issuer: each part has one of its own."""
    reviewer, file = _token(directory.keys, "demo-reviewer", "reviewer"), directory.root / "reviewer.token"
    write_text(file, reviewer + "\n", 0o600)
    return Access(
        url=url,
        agents={name: _token(directory.keys, name, "agent", name) for name in agents},
        reviewer=reviewer,
        operator=_token(directory.keys, "demo-operator", "operator"),
        reviewer_file=file,
    )


def _token(keys: Path, subject: str, role: str, agent: str | None = None) -> str:
    return issue(keys, subject, [role], TENANT, PROJECT, agent, TOKEN_TTL_S)
