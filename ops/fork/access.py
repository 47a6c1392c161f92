"""Who forks: the gateway's address and the tokens, given or issued by the stack of a data directory."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.identity.issuer import issue
from gateway.identity.keys import KeysUnreadable
from ops.component import DEGRADED, READY
from ops.config import DataDir
from ops.errors import UsageError
from ops.status import read_stack
from placet import AsyncPlacet
from placet.cli.token_roles import claims_in
from placet.config import find_config
from placet.transport.port import Patience
from schemas.ids import TENANT_WIDE
from schemas.token import TokenRefused

TTL_S = 60 * 60
# A person is waiting; an answer that the gateway waits for comes within 13 s.
PATIENCE = Patience(request_s=5.0, open_s=5.0, answer_s=20.0)


@dataclass(frozen=True)
class Access:
    """A gateway, and who reads the original, decides in the fork, and proposes there as the agent.

    Attributes:
        url: the gateway's address.
        subject: the person who forks.
        reader: a token that reads the original's project and the tenant's definitions.
        person: a token that publishes, decides and ends in the fork's project.
        agent: a token that acts for the agent in the fork's project.
    """

    url: str
    subject: str
    reader: str = field(repr=False)
    person: str = field(repr=False)
    agent: str = field(repr=False)

    def of_reader(self, project: str | None) -> AsyncPlacet:
        """A client that reads a project; None: the tenant's own definitions."""
        return _client(self.url, self.reader, project)

    def of_person(self, project: str) -> AsyncPlacet:
        """A client of the person in the fork's project."""
        return _client(self.url, self.person, project)

    def of_agent(self, project: str, agent: str) -> AsyncPlacet:
        """A client of the agent in the fork's project."""
        return _client(self.url, self.agent, project, agent)


def by_token(url: str | None, token: str | None) -> Access:
    """Access by the one token that the command has: it has to be of the whole tenant, and of an admin or operator.

    Raises:
        UsageError: it is of one project, or of an agent: nobody could make a project with it.
    """
    config = find_config(url, token)
    claims = claims_in(config.token)
    project, subject = claims.get("project"), claims.get("sub")
    if claims.get("agent") is not None or (project is not None and project != TENANT_WIDE):
        what = "is an agent's" if claims.get("agent") is not None else f"is only for the project {project}"
        raise UsageError(
            f"This token {what}, and a fork gets a project of its own: give one of the whole tenant (project *) with"
            " the roles operator and reviewer, or admin; or on the stack's machine --data-dir, which issues what is"
            " needed."
        )
    said = subject if isinstance(subject, str) else "the token's subject"
    return Access(config.url, said, config.token, config.token, config.token)


@dataclass(frozen=True)
class Issued:
    """What the tokens of a local stack are issued for: the tenant, the person, and the person's own roles."""

    directory: DataDir
    tenant: str
    subject: str | None = None
    roles: Sequence[str] = ()

    def reading(self) -> Access:
        """Access that can only read.

        Raises:
            UsageError: the stack does not run, or its keys cannot be used.
        """
        stack = read_stack(self.directory)
        # A part may be away that a fork does not need: what it needs says so itself.
        if stack.state not in (READY, DEGRADED) or stack.url is None:
            raise UsageError(
                f"The stack in {self.directory.root} is {stack.state}: start it with `placet up --data-dir"
                f" {self.directory.root}`."
            )
        subject = self.subject or getpass.getuser()
        reader = self._token(subject, ["analyst"], TENANT_WIDE)
        return Access(stack.url, subject, reader, "", "")

    def forking(self, reading: Access, project: str, agent: str, user: str, workspace: str) -> Access:
        """The same access with tokens for the fork's project, and for no other.

        Args:
            reading: what was issued for reading.
            project: the fork's.
            agent: the original's agent; its token has a subject of its own, so that the person who decides is not
                the requester.
            user: the original's, empty for none.
            workspace: likewise.

        Raises:
            UsageError: no token may be issued for such a person.
        """
        person = self._token(reading.subject, ["operator", "reviewer", *self.roles], project)
        proposing = self._token(f"fork:{agent}", ["agent"], project, agent, user or None, workspace or None)
        return Access(reading.url, reading.subject, reading.reader, person, proposing)

    def _token(
        self,
        subject: str,
        roles: Sequence[str],
        project: str,
        agent: str | None = None,
        user: str | None = None,
        workspace: str | None = None,
    ) -> str:
        try:
            return issue(
                self.directory.keys, subject, roles, self.tenant, project, agent, TTL_S, user, workspace
            )
        except TokenRefused as error:
            raise UsageError(f"No token can be issued for {subject}: {error}.") from error
        except KeysUnreadable as error:
            raise UsageError(str(error)) from error


def _client(url: str, token: str, project: str | None, agent: str | None = None) -> AsyncPlacet:
    # A project is named in any case: without, PLACET_PROJECT would be.
    named = TENANT_WIDE if project is None else project
    return AsyncPlacet(url, token=token, agent=agent, transport="rest", patience=PATIENCE, project=named)
