"""Commands of services that produce to Kafka themselves, authenticated by an agent's token (docs/log-contract.md)."""

from __future__ import annotations

from schemas import codec
from schemas.envelope import Draft
from schemas.record import OutRecord


def with_token(draft: Draft, token: str) -> OutRecord:
    """The record of a command with a token in place of a signature."""
    headers = (
        ("ce_specversion", b"1.0"),
        ("ce_id", draft.command_id.encode()),
        ("ce_type", codec.SUBJECTS[type(draft.body)].encode()),
        ("ce_source", b"/placet/service"),
        ("ce_subject", draft.key),
        ("placet_tenant", draft.actor.tenant.encode()),
        ("placet_token", token.encode()),
    )
    return OutRecord(draft.key, codec.encode(draft.body), headers)
