"""Signed grants: who gets them, and the keys that sign them.

A grant's token is sent only to callers who may consume the grant, and only while the call is released. It is signed
when it is first needed; the key file is checked once a second, so that a rotated key is used without a restart.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.identity.authentication import acts_for
from gateway.identity.keys import GRANTS, GRANTS_KEY, KeysUnreadable, load_public, load_signing
from projections.folds.calls import call_json
from projections.tables.calls import CallRow
from schemas.actor import Actor
from schemas.grant import GrantClaims, GrantKey, jwks

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
SIGNED_MAX = 4_096
Stamp = tuple[int, int]


@dataclass(slots=True)
class Grants:
    """Signs the grants of one installation."""

    keys_dir: Path
    clock: Callable[[], float] = time.monotonic
    _key: GrantKey | None = field(default=None, init=False)
    _stamp: Stamp | None = field(default=None, init=False)
    _looked_at_s: float = field(default=0.0, init=False)
    _published: dict[str, Any] | None = field(default=None, init=False)
    _published_stamp: Stamp | None = field(default=None, init=False)
    _signed: OrderedDict[tuple[str | None, ...], str] = field(default_factory=OrderedDict, init=False)

    def call_json(self, row: CallRow, actor: Actor) -> dict[str, Any]:
        """Return a call's resource as this actor may see it."""
        resource = call_json(row)
        if is_consumable(row) and acts_for(actor, row["agent"]):
            resource["grant"]["token"] = self.token(row)
        return resource

    def token(self, row: CallRow) -> str:
        """Return the token of a released call's grant.

        Raises:
            ValueError: the call has no grant.
            KeysUnreadable: there is no key to sign with.
        """
        key = self._current_key()
        name = (key.kid, row["tenant"], row["project"], row["execution_id"], row["grant_id"])
        token = self._signed.get(name)
        if token is None:
            token = self._signed[name] = key.sign(_claims(row))
            if len(self._signed) > SIGNED_MAX:
                self._signed.popitem(last=False)
        return token

    def jwks(self) -> dict[str, Any]:
        """Return the public halves of all keys that have signed grants, as a JSON Web Key Set; a change is noticed.

        Raises:
            KeysUnreadable: their file is damaged.
        """
        path = self.keys_dir / GRANTS
        stamp = _stamp(path) if path.exists() else None
        if self._published is None or stamp != self._published_stamp:
            self._published, self._published_stamp = jwks(load_public(path)), stamp
        return self._published

    def _current_key(self) -> GrantKey:
        now = self.clock()
        if self._key is not None and now - self._looked_at_s < LOOK_EVERY_S:
            return self._key
        self._looked_at_s = now
        try:
            self._read_changed()
        except (KeysUnreadable, OSError) as error:
            if self._key is None:
                raise
            logger.error("grants are still signed with the key %s: %s", self._key.kid, error)
        if self._key is None:
            raise KeysUnreadable(f"{self.keys_dir / GRANTS_KEY} does not exist: restart the gateway")
        return self._key

    def _read_changed(self) -> None:
        path = self.keys_dir / GRANTS_KEY
        stamp = _stamp(path)
        if stamp != self._stamp:
            found = load_signing(path)
            self._key, self._stamp = GrantKey(found.kid, found.private_key), stamp


def is_consumable(row: CallRow) -> bool:
    """Return True if a call has the status released."""
    return bool(row["status"] == "released" and row["grant_id"] is not None)


def _stamp(path: Path) -> Stamp:
    """Return a value that differs once a file was written again."""
    status = path.stat()
    return status.st_mtime_ns, status.st_ino


def _claims(row: CallRow) -> GrantClaims:
    grant_id, digest, expires_at_ms = row["grant_id"], row["grant_digest"], row["grant_expires_at_ms"]
    if grant_id is None or digest is None or expires_at_ms is None:
        raise ValueError(f"the call {row['call_id']} has no grant")
    return GrantClaims(
        grant_id=grant_id,
        tenant=row["tenant"],
        project=row["project"],
        execution_id=row["execution_id"],
        call_id=row["call_id"],
        revision=row["revision"],
        agent=row["agent"],
        tool=row["tool"],
        tool_version=row["tool_version"],
        digest=digest,
        # While a call has the status released, nothing has happened to it since.
        released_at_s=row["updated_at_ms"] // 1000,
        expires_at_s=expires_at_ms // 1000,
    )
