"""The address of the demo's gateway, and the tokens of agents, reviewer and operator."""

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
    """A gateway and tokens for it.

    Attributes:
        url: the gateway's address.
        agents: a token for each agent, valid for that agent only.
        reviewer: the token that decides holds.
        operator: the token that publishes tools and the policy.
        reviewer_file: a file with the reviewer's token, for use in another terminal; None if there is none.
    """

    url: str
    agents: dict[str, str]
    reviewer: str
    operator: str
    reviewer_file: Path | None = None


def with_one_token(url: str, token: str, agents: Sequence[str]) -> Access:
    """Access to a gateway that runs elsewhere; one token (an admin's) serves all parts."""
    return Access(url, dict.fromkeys(agents, token), token, token)


def with_own_tokens(url: str, directory: DataDir, agents: Sequence[str]) -> Access:
    """Access to the stack of a data directory, with a token for each part from the stack's own issuer."""
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
