"""The parts of a projector's process that sign and store heads, built from its settings."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from host.errors import SettingsRefused
from host.key_files import load_public, load_published
from projections.audit.head_files import HeadFiles
from projections.audit.head_settings import (
    DEFAULT_EVENTS,
    DEFAULT_SECONDS,
    checked_address,
    heads_dir,
)
from projections.audit.heads import HeadSigner, SignedHeads
from schemas.audit import AUDIT_KEY, AUDIT_KEYS


@dataclass(slots=True)
class Audit:
    """The part that signs and stores heads. `on_failure` is called when posting them has failed for good."""

    head_signer: HeadSigner
    on_failure: Callable[[], None] = lambda: None


def signed_heads(settings: Mapping[str, str]) -> SignedHeads:
    """The heads stored outside, and the public keys whose signatures are trusted.

    Raises:
        KeysUnreadable: the file of public keys is damaged.
    """
    return SignedHeads(HeadFiles(heads_dir(settings)), load_public(Path(settings["keys_dir"]) / AUDIT_KEYS))


@asynccontextmanager
async def opened_audit(settings: Mapping[str, str]) -> AsyncIterator[Audit]:
    """Sign and store heads as the settings say, and post them if there is a webhook.

    Raises:
        HeadsUnusable: another projector stores heads there, or they cannot be read or written.
        KeysUnreadable: the key is damaged.
        SettingsRefused: the webhook's address cannot be used, or a setting is not a number.
    """
    keys_dir = Path(settings["keys_dir"])
    key = load_published(keys_dir, AUDIT_KEY, AUDIT_KEYS)
    files = HeadFiles(heads_dir(settings))
    head_signer = HeadSigner(
        files,
        key,
        load_public(keys_dir / AUDIT_KEYS),
        every_events=int(_number(settings, "audit_head_events", DEFAULT_EVENTS)),
        every_s=_number(settings, "audit_head_seconds", DEFAULT_SECONDS),
    )
    webhook = None
    if url := settings.get("audit_webhook"):
        # Its HTTP client is loaded only if heads are posted.
        from projections.audit.webhook import Webhook

        webhook = Webhook(checked_address(url), files, key)
    with files.writing():
        audit = Audit(head_signer)
        if webhook is None:
            yield audit
            return
        head_signer.told = lambda head: webhook.woken.set()
        posting = asyncio.create_task(webhook.run())
        posting.add_done_callback(lambda _: audit.on_failure())
        try:
            yield audit
            if posting.done():
                posting.result()
        finally:
            posting.cancel()
            await asyncio.wait({posting})


def _number(settings: Mapping[str, str], name: str, default: float) -> float:
    text = settings.get(name)
    try:
        number = float(text) if text else default
    except ValueError as error:
        raise SettingsRefused(f"{name} must be a number, not {text[:40] if text else ''}.") from error
    if not 0 < number < 1e9:
        raise SettingsRefused(f"{name} must be above 0.")
    return number
