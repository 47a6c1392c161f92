"""Heads: signed statements of how far each tenant's trees have grown, and the check of the trees against them.

1. At start the newest head of each tenant must match the beginning of the tree that the log gives. If the view has
   not read that far yet, this is checked as soon as it has, and at the latest when it has caught up.
2. A head is signed of what is in the database, after a number of leaves or seconds, and only if leaves were added.
3. Nothing is signed for a tenant whose newest head was not checked.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from host.key_files import SigningKey
from log.errors import LogError
from projections.audit.head_files import HeadFiles
from projections.audit.head_settings import DEFAULT_EVENTS, DEFAULT_SECONDS
from projections.audit.tiles import Tiles
from projections.audit.trees import TreeKey
from projections.store.port import Batch, RowStore, Values, ViewStore
from projections.tables.audit import AUDIT_TILES, AUDIT_TREES
from schemas.audit import AUDIT_KEYS, Head, TopicRole, TreeHead, sign_head, verify_head
from schemas.headers import rfc3339

# Each head is synced to the disk, and the views wait meanwhile.
HEADS_A_TURN = 8

PublicKeys = Mapping[str, Ed25519PublicKey]


class HeadsDisagree(LogError):
    """The log does not give what was signed before: records were cut off, removed or changed.

    Nothing is skipped. The operator restores the log, or keeps the heads as evidence and continues without them.
    """

    def __init__(self, path: Path, what: str, advice: str = "") -> None:
        # A rebuilt view is checked against the heads before it replaces the live one.
        otherwise = (
            "Rebuild the view with placet replay --force; if that reports the same, the log was cut or changed: "
            "restore it from a backup. Only if the present log is the intended one, with all topics from one moment, "
            "move that file elsewhere as evidence"
        )
        super().__init__(
            f"The audit heads kept in {path} disagree with the view: {what}. {advice or otherwise}."
        )


@dataclass(slots=True)
class _Tenant:
    newest: Head | None = None
    is_checked: bool = True
    sizes: dict[TreeKey, tuple[int, int]] = field(default_factory=dict)
    signed_leaves: int = 0
    changed_at: float = 0.0

    def leaves(self) -> int:
        return sum(size for size, _ in self.sizes.values())


@dataclass(slots=True)
class HeadSigner:
    """Signs heads for one view.

    Attributes:
        files: where the heads are stored; the caller holds the directory (`HeadFiles.writing`).
        key: signs them.
        believed: the public keys that are accepted as ours.
        every_events: the number of leaves of a tenant after which a head is signed.
        every_s: the number of seconds after which one is signed, if there are new leaves.
        told: called with each new head.
    """

    files: HeadFiles
    key: SigningKey
    believed: PublicKeys
    every_events: int = DEFAULT_EVENTS
    every_s: float = DEFAULT_SECONDS
    told: Callable[[Head], None] = lambda head: None
    clock: Callable[[], float] = time.monotonic
    _tenants: dict[str, _Tenant] = field(default_factory=dict)
    _grown: dict[str, None] = field(default_factory=dict)
    _unchecked: set[str] = field(default_factory=set)

    def begin(self, store: ViewStore) -> None:
        """Take a view: read its trees, and what was signed before.

        Raises:
            HeadsDisagree: a head was not signed by us, or is not of this log.
            HeadsUnusable: the heads cannot be read.
        """
        self._tenants, self._grown = {}, {}
        for tenant in self.files.tenants():
            newest = newest_head(self.files, tenant, self.believed)
            signed = 0 if newest is None else sum(tree.size for tree in newest.trees)
            self._tenants[tenant] = _Tenant(newest, newest is None, signed_leaves=signed)
        self._unchecked = {name for name, tenant in self._tenants.items() if not tenant.is_checked}
        with store.snapshot() as moment:
            for row in moment.rows(AUDIT_TREES):
                self._grew(row)
        self._check(store, is_whole=False)

    def wrote(self, batch: Batch) -> None:
        """Note that a batch is in the database."""
        for row in batch.upserts.get(AUDIT_TREES.name, ()):
            self._grew(row)

    def turn(self, store: ViewStore, *, is_caught_up: bool) -> None:
        """Check what can be checked now, and sign what is due.

        Raises:
            HeadsDisagree: the log is not the one that was signed.
            HeadsUnusable: a head could not be stored.
        """
        if self._unchecked:
            self._check(store, is_whole=is_caught_up)
        due = [name for name in self._grown if self._is_due(self._tenants[name])]
        for name in due[:HEADS_A_TURN]:
            self._sign(name, store)

    def _grew(self, row: Values) -> None:
        key, grown = _of_row(row)
        name = key.tenant
        tenant = self._tenants.setdefault(name, _Tenant())
        tenant.sizes[key] = grown
        if name not in self._grown and tenant.leaves() > tenant.signed_leaves:
            self._grown[name] = None
            tenant.changed_at = self.clock()

    def _is_due(self, tenant: _Tenant) -> bool:
        if not tenant.is_checked:
            return False
        grown = tenant.leaves() - tenant.signed_leaves
        return grown >= self.every_events or self.clock() - tenant.changed_at >= self.every_s

    def _sign(self, name: str, store: ViewStore) -> None:
        tenant = self._tenants[name]
        before = {} if tenant.newest is None else {tree[:2]: tree for tree in tenant.newest.trees}
        trees = []
        for key, (size, last_offset) in tenant.sizes.items():
            known = before.get((key.topic, key.partition))
            if known is None or known.size != size:
                root = stored_tiles(store, key).root(size).hex()
                known = TreeHead(key.topic, key.partition, last_offset, size, root)
            trees.append(known)
        head = sign_head(self.key, name, rfc3339(time.time_ns() // 1_000_000), tenant.newest, trees)
        self.files.append(head)
        tenant.newest, tenant.signed_leaves = head, tenant.leaves()
        del self._grown[name]
        self.told(head)

    def _check(self, store: ViewStore, *, is_whole: bool) -> None:
        for name in sorted(self._unchecked):
            tenant = self._tenants[name]
            assert tenant.newest is not None
            if check_head(tenant.newest, tenant.sizes, store, self.files.path(name), is_whole=is_whole):
                tenant.is_checked = True
                self._unchecked.discard(name)


@dataclass(frozen=True, slots=True)
class SignedHeads:
    """The heads stored outside, for processes that only check. `believed` are the public keys of the signers."""

    files: HeadFiles
    believed: PublicKeys

    def newest(self) -> dict[str, Head]:
        """Returns the newest head of each tenant; errors as `newest_head`."""
        found = {tenant: newest_head(self.files, tenant, self.believed) for tenant in self.files.tenants()}
        return {tenant: head for tenant, head in found.items() if head is not None}


def newest_head(files: HeadFiles, tenant: str, believed: PublicKeys) -> Head | None:
    """The newest head of a tenant, signed by us.

    Raises:
        HeadsDisagree: it is not.
        HeadsUnusable: it cannot be read.
    """
    head = files.newest(tenant)
    if head is not None and not (head.tenant == tenant and _is_ours(head, believed)):
        raise HeadsDisagree(
            files.path(tenant),
            f"head {head.number} was not signed by this installation's keys",
            f"Restore that file and keys/{AUDIT_KEYS} from a backup of one moment",
        )
    return head


def check_head(
    head: Head, sizes: Mapping[TreeKey, tuple[int, int]], store: RowStore, path: Path, *, is_whole: bool
) -> bool:
    """Check that a view's trees begin as a head says.

    Args:
        head: the newest of its tenant.
        sizes: the sizes of the tenant's trees in the view, with their last offsets.
        store: the view.
        path: where the head is stored, for the error.
        is_whole: True if the view has read the whole log, so that a shorter tree means that the log was cut.

    Returns:
        False if the view has not read far enough to decide.

    Raises:
        HeadsDisagree: they do not.
    """
    keys = {TreeKey(head.tenant, tree.topic, tree.partition): tree for tree in head.trees}
    short = [key for key, tree in keys.items() if sizes.get(key, (0, -1))[0] < tree.size]
    for key, tree in keys.items():
        name = f"{tree.topic}/{tree.partition} of tenant {head.tenant}"
        if key not in short and stored_tiles(store, key).root(tree.size).hex() != tree.root:
            raise HeadsDisagree(
                path,
                f"the first {tree.size} records of {name}, up to offset {tree.last_offset}, are not those that "
                f"head {head.number} was signed for",
            )
        if key in short and is_whole:
            raise HeadsDisagree(
                path,
                f"{name} ends after {sizes.get(key, (0, -1))[0]} records, but head {head.number} was signed for "
                f"{tree.size}, up to offset {tree.last_offset}: its tail was cut off",
            )
    return not short


def check_all(files: HeadFiles, heads: Mapping[str, Head], store: ViewStore) -> None:
    """Check a view that has read the whole log against heads that were read before that.

    Raises:
        HeadsDisagree: the log is not the one that was signed.
    """
    sizes: dict[str, dict[TreeKey, tuple[int, int]]] = {}
    with store.snapshot() as moment:
        for key, grown in map(_of_row, moment.rows(AUDIT_TREES)):
            sizes.setdefault(key.tenant, {})[key] = grown
    for tenant, head in heads.items():
        check_head(head, sizes.get(tenant, {}), store, files.path(tenant), is_whole=True)


def stored_tiles(store: RowStore, key: TreeKey) -> Tiles:
    """The tiles of a tree in the store."""

    def read(level: int, number: int) -> bytes:
        rows = store.load(AUDIT_TILES, [(*key, level, number)])
        found: bytes = rows[0]["hashes"] if rows else b""
        return found

    return Tiles(read)


def _of_row(row: Values) -> tuple[TreeKey, tuple[int, int]]:
    tenant, topic, partition, size, last_offset = cast("tuple[str, TopicRole, int, int, int]", row)
    return TreeKey(tenant, topic, partition), (size, last_offset)


def _is_ours(head: Head, believed: PublicKeys) -> bool:
    return any(verify_head(head, key) for key in believed.values())
