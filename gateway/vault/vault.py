"""Sealing, opening and erasing: AES-256-GCM under a data key of the project, which the master key wraps.

A data key from before projects had their own belongs to the tenant (`*`): it opens what it sealed, in any project,
and nothing new is sealed under it.

Sealing, in this order:
1. if the same person has sealed the same value for the same place before (among the last 64), that one is used again,
   so that a repeat is a repeat;
2. a fresh nonce and the value are sealed together under the project's data key, bound to their place;
3. they are on disk before any command that names their handle is sent.
"""

from __future__ import annotations

import hmac
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.vault.store import Execute, VaultDatabase
from gateway.vault.wrapping import KEY_BYTES, KeyWrapper
from schemas.canonical import canonical, parse_strict
from schemas.sensitive import HANDLE_PREFIX, NONCE_BYTES, commitment_of

GCM_NONCE_BYTES = 12
ORPHANS_MAX = 500
# Each must be opened to be compared: a caller with ever new values must not cause an ever growing number of openings.
SAME_MAX = 64
FOLLOWED = "followed"
# The limit for work on everything that was ever sealed.
LONG_S = 30.0


class Owner(NamedTuple):
    """The owner of sealed values: a call or a request, by `kind`."""

    tenant: str
    project: str
    execution_id: str
    kind: str
    subject_id: str


class Gone(LookupError):
    """A sealed value no longer exists: it was erased, or its data key was destroyed."""


class NeverSealed(Gone):
    """There is no such value, and no trace of one: it was not sealed here for this place, or the vault was lost."""


class Damaged(RuntimeError):
    """A sealed value is not the one that was sealed for this place: the vault was changed."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A value as it is delivered, with its proof: SHA-256(nonce ‖ canonical value) is its commitment."""

    handle: str
    nonce: bytes = field(repr=False)
    value: Any = field(repr=False)


class Sealed(NamedTuple):
    """A sealed value without its content."""

    handle: str
    owner: Owner
    path: str
    commitment: str


class DataKey(NamedTuple):
    """A data key's name, unique in its tenant, and its state. The project is `*` if the key belongs to the tenant."""

    tenant: str
    project: str
    name: str
    wrapped_by: str
    made_at_ms: int
    destroyed_at_ms: int | None


_COLUMNS = "handle, tenant, project, execution_id, kind, subject_id, path, commitment"
_OF_OWNER = "tenant = ? AND project = ? AND execution_id = ? AND kind = ? AND subject_id = ?"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Vault:
    """The sealed values of an installation. Its methods block on the disk: call them from a thread."""

    database: VaultDatabase
    wrapper: KeyWrapper
    now_ms: Callable[[], int] = _now_ms

    def seal(self, owner: Owner, by: str, values: Mapping[str, Any]) -> dict[str, dict[str, str]]:
        """Seal values, and return the placeholder of each.

        Args:
            owner: the owner of the values.
            by: the subject that gave them; only the same subject's earlier values are used again.
            values: by JSON pointer.

        Raises:
            VaultUnavailable: they could not be written.
            MasterKeyWrong: the project's data key cannot be unwrapped.
        """
        found: dict[str, dict[str, str]] = {}
        with self.database.transaction(owner.tenant) as execute:
            for path, value in values.items():
                text = canonical(value)
                handle, commitment = self._same(execute, owner, by, path, text) or self._fresh(
                    execute, owner, by, path, text
                )
                found[path] = {"handle": handle, "commitment": commitment}
        return found

    def open(self, owner: Owner, handles: Sequence[tuple[str, str]]) -> list[Opened]:
        """Return the values of handles, each with its path.

        Args:
            owner: the owner that the values must belong to.
            handles: (JSON pointer, handle).

        Raises:
            Gone: one was erased.
            NeverSealed: one does not exist, or belongs to another owner.
            Damaged: one is not what was sealed.
            VaultUnavailable: they cannot be read now.
        """
        with self.database.transaction(owner.tenant) as execute:
            return [self._opened(execute, owner, path, handle) for path, handle in handles]

    def known(self, owner: Owner, handles: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return those of the (JSON pointer, handle) that were ever sealed for an owner, including erased ones."""
        with self.database.transaction(owner.tenant) as execute:
            rows = execute(f"SELECT path, handle FROM sealed WHERE {_OF_OWNER}", owner)  # noqa: S608
        return set(handles) & {(row[0], row[1]) for row in rows}

    def erase(self, owner: Owner) -> int:
        """Erase everything that belongs to a call or request; return the number of values that ever did."""
        with self.database.transaction(owner.tenant) as execute:
            rows = execute(f"SELECT handle, box IS NULL FROM sealed WHERE {_OF_OWNER}", owner)  # noqa: S608
            self._shred(execute, [row[0] for row in rows if not row[1]])
        # Even if all were erased before: the database's own files may not have been cleaned then.
        if rows:
            self.database.shred()
        return len(rows)

    def destroy_key(self, tenant: str, project: str, name: str) -> bool:
        """Destroy a data key: nothing that was sealed under it can be read again, from any copy of the vault.

        A key with this name that belongs to another project stays.

        Returns:
            True if there was a key to destroy.
        """
        with self.database.transaction(tenant, within_s=LONG_S) as execute:
            where = (tenant, name, project)
            there = "WHERE tenant = ? AND name = ? AND project = ? AND wrapped IS NOT NULL"
            is_there = bool(execute(f"SELECT 1 FROM data_keys {there}", where))  # noqa: S608
            execute(
                f"UPDATE data_keys SET wrapped = NULL, destroyed_at_ms = ? {there}",  # noqa: S608
                (self.now_ms(), *where),
            )
            execute(
                "UPDATE sealed SET box = NULL, erased_at_ms = ? "
                "WHERE tenant = ? AND key_name = ? AND box IS NOT NULL "
                "AND EXISTS (SELECT 1 FROM data_keys WHERE tenant = ? AND name = ? AND project = ?)",
                (self.now_ms(), tenant, name, *where),
            )
        self.database.shred()
        return is_there

    def data_keys(self, tenant: str) -> list[DataKey]:
        """Return the data keys of a tenant, oldest first."""
        with self.database.transaction(tenant) as execute:
            rows = execute(
                "SELECT tenant, project, name, wrapped_by, made_at_ms, destroyed_at_ms FROM data_keys "
                "WHERE tenant = ? ORDER BY number",
                (tenant,),
            )
        return [DataKey(*row) for row in rows]

    def rewrap(self, wrapper: KeyWrapper) -> int:
        """Wrap every data key by another master key; return their number.

        Raises:
            MasterKeyWrong: one is not wrapped by this vault's master key; then none is changed.
        """
        with self.database.transaction("", alone=True, within_s=LONG_S) as execute:
            rows = execute("SELECT tenant, name, wrapped FROM data_keys WHERE wrapped IS NOT NULL", ())
            for tenant, name, wrapped in rows:
                again = wrapper.wrap(self.wrapper.unwrap(bytes(wrapped)))
                execute(
                    "UPDATE data_keys SET wrapped = ?, wrapped_by = ? WHERE tenant = ? AND name = ?",
                    (again.key, again.by, tenant, name),
                )
        self.database.shred()
        return len(rows)

    def unconfirmed(self, before_ms: int) -> list[Sealed]:
        """Return a bounded number of values sealed before a moment that are not yet known to be named in the log."""
        with self.database.transaction("") as execute:
            rows = execute(
                f"SELECT {_COLUMNS} FROM sealed WHERE landed = 0 AND box IS NOT NULL AND sealed_at_ms < ? "  # noqa: S608
                f"ORDER BY sealed_at_ms LIMIT {ORPHANS_MAX}",
                (before_ms,),
            )
        return [Sealed(row[0], Owner(*row[1:6]), row[6], row[7]) for row in rows]

    def settle(self, landed: Sequence[str], orphans: Sequence[str]) -> None:
        """Note the handles that the log names, and erase those that no command ever brought to the log."""
        with self.database.transaction("") as execute:
            for handle in landed:
                execute("UPDATE sealed SET landed = 1 WHERE handle = ?", (handle,))
            self._shred(execute, orphans)
        if orphans:
            self.database.shred()

    def projects(self) -> list[tuple[str, str]]:
        """Return the tenants and projects for which a value was ever sealed."""
        with self.database.transaction("", within_s=LONG_S) as execute:
            rows = execute("SELECT DISTINCT tenant, project FROM sealed ORDER BY tenant, project", ())
        return [(row[0], row[1]) for row in rows]

    def mark(self) -> int:
        """Return the moment up to which the vault is known to follow the log (ms); 0 if none was noted."""
        with self.database.transaction("") as execute:
            rows = execute("SELECT at_ms FROM marks WHERE name = ?", (FOLLOWED,))
        return int(rows[0][0]) if rows else 0

    def set_mark(self, at_ms: int) -> None:
        """Note the moment up to which the vault follows the log."""
        with self.database.transaction("") as execute:
            execute("DELETE FROM marks WHERE name = ?", (FOLLOWED,))
            execute("INSERT INTO marks (name, at_ms) VALUES (?, ?)", (FOLLOWED, at_ms))

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def _same(self, execute: Execute, owner: Owner, by: str, path: str, text: str) -> tuple[str, str] | None:
        rows = execute(
            f"SELECT handle, commitment FROM sealed WHERE {_OF_OWNER} AND path = ? AND sealed_by = ? "  # noqa: S608
            f"AND box IS NOT NULL ORDER BY sealed_at_ms DESC LIMIT {SAME_MAX}",
            (*owner, path, by),
        )
        for handle, commitment in rows:
            known = canonical(self._opened(execute, owner, path, handle).value)
            if hmac.compare_digest(known.encode(), text.encode()):
                return handle, commitment
        return None

    def _fresh(self, execute: Execute, owner: Owner, by: str, path: str, text: str) -> tuple[str, str]:
        handle = HANDLE_PREFIX + secrets.token_hex(16)
        nonce = secrets.token_bytes(NONCE_BYTES)
        commitment = commitment_of(nonce, text)
        name, key = self._current_key(execute, owner.tenant, owner.project)
        iv = secrets.token_bytes(GCM_NONCE_BYTES)
        box = iv + AESGCM(key).encrypt(
            iv, nonce + text.encode(), _bound_to(owner, path, handle, commitment, name)
        )
        execute(
            f"INSERT INTO sealed ({_COLUMNS}, sealed_by, key_name, sealed_at_ms, box) "  # noqa: S608
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (handle, *owner, path, commitment, by, name, self.now_ms(), box),
        )
        return handle, commitment

    def _opened(self, execute: Execute, owner: Owner, path: str, handle: str) -> Opened:
        rows = execute(
            "SELECT commitment, box, key_name, wrapped FROM sealed JOIN data_keys "
            "ON data_keys.tenant = sealed.tenant AND data_keys.name = sealed.key_name "
            "WHERE handle = ? AND sealed.tenant = ? AND sealed.project = ? AND execution_id = ? AND kind = ? "
            "AND subject_id = ? AND path = ?",
            (handle, *owner, path),
        )
        if not rows:
            # An erased value leaves its row behind.
            raise NeverSealed(f"nothing was ever sealed as {handle} for {path} here")
        if rows[0][1] is None or rows[0][3] is None:
            raise Gone("the sensitive values were erased")
        commitment, box, name, wrapped = rows[0]
        key, box = self.wrapper.unwrap(bytes(wrapped)), bytes(box)
        bound = _bound_to(owner, path, handle, commitment, name)
        try:
            plain = AESGCM(key).decrypt(box[:GCM_NONCE_BYTES], box[GCM_NONCE_BYTES:], bound)
        except InvalidTag as error:
            raise Damaged(
                f"the sealed value {handle} was changed: restore the vault from a backup"
            ) from error
        return Opened(handle, plain[:NONCE_BYTES], parse_strict(plain[NONCE_BYTES:]))

    def _current_key(self, execute: Execute, tenant: str, project: str) -> tuple[str, bytes]:
        rows = execute(
            "SELECT name, number, wrapped, project FROM data_keys WHERE tenant = ? ORDER BY number", (tenant,)
        )
        mine = [row for row in rows if row[3] == project]
        if mine and mine[-1][2] is not None:
            return mine[-1][0], self.wrapper.unwrap(bytes(mine[-1][2]))
        number = rows[-1][1] + 1 if rows else 1
        name, key = f"key-{number}", secrets.token_bytes(KEY_BYTES)
        wrapped = self.wrapper.wrap(key)
        execute(
            "INSERT INTO data_keys (tenant, project, name, number, wrapped_by, made_at_ms, wrapped) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (tenant, project, name, number, wrapped.by, self.now_ms(), wrapped.key),
        )
        return name, key

    def _shred(self, execute: Execute, handles: Sequence[str]) -> None:
        for handle in handles:
            execute(
                "UPDATE sealed SET box = NULL, erased_at_ms = ? WHERE handle = ?", (self.now_ms(), handle)
            )


def _bound_to(owner: Owner, path: str, handle: str, commitment: str, key_name: str) -> bytes:
    """Return the data that a box is bound to, so that it cannot be moved."""
    return json.dumps([*owner, path, handle, commitment, key_name]).encode()
