"""Sensitive arguments: masked where a grant is verified, put back where the tool runs.

The log has `{handle, commitment}` in the place of a sensitive value; the value itself comes with the answer to the
consumption, and counts only if SHA-256(nonce ‖ canonical JSON of the value) is that commitment.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placet.canonical import canonical

Path = tuple[Any, ...]
HIDDEN = "[sensitive]"
# Shorter texts stand in many others by accident.
SHORTEST_HIDDEN = 4


class ForgedSecret(ValueError):
    """A sensitive value that was handed over is not the one that was decided on."""


def is_placeholder(value: Any) -> bool:
    """Whether a value stands for a sensitive one."""
    return (
        isinstance(value, Mapping)
        and set(value) == {"handle", "commitment"}
        and all(isinstance(part, str) for part in value.values())
        and value["handle"].startswith("sec_")
    )


def has_placeholder(value: Any) -> bool:
    """Whether anything in a value stands for a sensitive one."""
    if is_placeholder(value):
        return True
    if isinstance(value, Mapping):
        return any(map(has_placeholder, value.values()))
    return isinstance(value, list) and any(map(has_placeholder, value))


def masked(own: Any, public: Any) -> Any:
    """Our own arguments with what the log has where something sensitive stands; nothing else is taken over."""
    if is_placeholder(public):
        return public
    if isinstance(own, Mapping) and isinstance(public, Mapping):
        return {name: masked(part, public.get(name)) for name, part in own.items()}
    if isinstance(own, list) and isinstance(public, list) and len(own) == len(public):
        return [masked(part, there) for part, there in zip(own, public, strict=True)]
    return own


def restored(public: Any, delivered: Sequence[Mapping[str, Any]]) -> Any:
    """Arguments with the sensitive values that were handed over.

    Args:
        public: as they were decided on.
        delivered: `{path, handle, nonce, value}` each.

    Raises:
        ForgedSecret: a value is not what its commitment says, or belongs nowhere.
    """
    by_path = {str(one["path"]): one for one in delivered}
    found = _restored(public, by_path, "")
    if by_path:
        raise ForgedSecret(f"a sensitive value was handed over for {sorted(by_path)[0]}, where none stands")
    return found


def values_of(delivered: Sequence[Mapping[str, Any]]) -> list[str]:
    """The texts in values that were handed over, longest first: what must not be repeated."""
    texts = {text for one in delivered for text in _texts(one["value"]) if len(text) >= SHORTEST_HIDDEN}
    return sorted(texts, key=len, reverse=True)


def hidden(text: str, values: Sequence[str]) -> str:
    """A text without the sensitive values that stand in it as they are."""
    for value in values:
        text = text.replace(value, HIDDEN)
    return text


def _restored(public: Any, by_path: dict[str, Mapping[str, Any]], path: str) -> Any:
    if is_placeholder(public):
        one = by_path.pop(path, None)
        return public if one is None else _checked(public, one, path)
    if isinstance(public, Mapping):
        return {name: _restored(part, by_path, f"{path}/{_escaped(name)}") for name, part in public.items()}
    if isinstance(public, list):
        return [_restored(part, by_path, f"{path}/{index}") for index, part in enumerate(public)]
    return public


def _checked(public: Mapping[str, Any], one: Mapping[str, Any], path: str) -> Any:
    try:
        proof = hashlib.sha256(bytes.fromhex(one["nonce"]) + canonical(one["value"])).hexdigest()
    except (KeyError, TypeError, ValueError) as error:
        raise ForgedSecret(f"the sensitive value at {path} cannot be checked") from error
    same = one.get("handle") == public["handle"] and hmac.compare_digest(proof, public["commitment"])
    if not same:
        raise ForgedSecret(f"the sensitive value at {path} is not the one that was decided on")
    return one["value"]


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
