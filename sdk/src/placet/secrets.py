"""Sensitive arguments: masked where a grant is verified, restored where the tool runs.

The log has `{handle, commitment}` in place of a sensitive value. The value itself comes with the answer to the
consumption, and counts only if SHA-256(nonce ‖ canonical JSON of the value) equals that commitment.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placet.canonical import canonical, parse_strict

Path = tuple[Any, ...]
HIDDEN = "[sensitive]"
# Marks a sensitive property in a tool's inputSchema.
MARK = "x-placet-sensitive"


class ForgedSecret(ValueError):
    """A delivered sensitive value is not the one that was decided on."""


def is_placeholder(value: Any) -> bool:
    """Returns True if a value is the placeholder of a sensitive one."""
    return (
        isinstance(value, Mapping)
        and set(value) == {"handle", "commitment"}
        and all(isinstance(part, str) for part in value.values())
        and value["handle"].startswith("sec_")
    )


def has_placeholder(value: Any) -> bool:
    """Returns True if a value contains a placeholder of a sensitive one."""
    if is_placeholder(value):
        return True
    if isinstance(value, Mapping):
        return any(map(has_placeholder, value.values()))
    return isinstance(value, list) and any(map(has_placeholder, value))


def masked(own: Any, public: Any) -> Any:
    """The caller's own arguments with the log's placeholders in place of sensitive values; the rest is unchanged."""
    if is_placeholder(public):
        return public
    if isinstance(own, Mapping) and isinstance(public, Mapping):
        return {name: masked(part, public.get(name)) for name, part in own.items()}
    if isinstance(own, list) and isinstance(public, list) and len(own) == len(public):
        return [masked(part, there) for part, there in zip(own, public, strict=True)]
    return own


def handed_over(
    public: Mapping[str, Any],
    delivered: Sequence[Mapping[str, Any]],
    proposed: Mapping[str, Any],
    is_edited: bool,
) -> Mapping[str, Any]:
    """The arguments to run with, with their sensitive values, read back from their canonical bytes.

    Args:
        public: the arguments that were decided on.
        delivered: the sensitive values that came with the answer to the consumption.
        proposed: the arguments that were proposed.
        is_edited: True if a reviewer changed them.

    Raises:
        ForgedSecret: a value is missing, or is not the one that was decided on.
    """
    found = parse_strict(canonical(restored(public, delivered)))
    if not is_edited and canonical(found) != canonical(proposed):
        raise ForgedSecret("the values handed over are not those that were proposed")
    if has_placeholder(found) and not has_placeholder(proposed):
        raise ForgedSecret("a sensitive value was not handed over")
    assert isinstance(found, dict)
    return found


def restored(public: Any, delivered: Sequence[Mapping[str, Any]]) -> Any:
    """Arguments with the delivered sensitive values in place of their placeholders.

    Args:
        public: the arguments that were decided on.
        delivered: `{path, handle, nonce, value}` each.

    Raises:
        ForgedSecret: a value does not match its commitment, or its path has no placeholder.
    """
    by_path = {str(one["path"]): one for one in delivered}
    found = _restored(public, by_path, "")
    if by_path:
        raise ForgedSecret(
            f"a sensitive value was handed over for {sorted(by_path)[0]}, which has no placeholder"
        )
    return found


def plain_places(schema: Any, public: Any, given: Any) -> list[Path]:
    """The paths at which arguments contain a sensitive value itself instead of its placeholder.

    Args:
        schema: the tool's inputSchema, which marks the sensitive paths.
        public: the call's arguments as in the log, whose placeholders mark sensitive paths too.
        given: the arguments to check.
    """
    return list(_plain_places(schema, public, given, ()))


def covered(value: Any, places: Sequence[Path]) -> Any:
    """A value with `[sensitive]` at the given paths."""
    return _covered(value, frozenset(places), ())


def has_marks(schema: Any) -> bool:
    """Returns True if anything reached by `properties` and `items` is marked; marks occur only there."""
    if not isinstance(schema, Mapping):
        return False
    properties = schema.get("properties")
    parts = [schema.get("items"), *(properties.values() if isinstance(properties, Mapping) else ())]
    return _is_marked(schema) or any(map(has_marks, parts))


def pointer(path: Path) -> str:
    """A path as a JSON pointer (RFC 6901)."""
    return "".join(f"/{_escaped(str(step))}" for step in path)


def _plain_places(schema: Any, public: Any, given: Any, path: Path) -> Iterator[Path]:
    if is_placeholder(given):
        return
    if is_placeholder(public) or _is_marked(schema):
        yield path
    elif isinstance(given, Mapping) and _is_object(schema, public):
        for name, part in given.items():
            yield from _plain_places(_property(schema, name), _at(public, name), part, (*path, name))
    elif isinstance(given, list) and _is_array(schema, public):
        for index, part in enumerate(given):
            yield from _plain_places(_of(schema, "items"), _at(public, index), part, (*path, index))
    elif given is not None and (has_placeholder(public) or has_marks(schema)):
        # Its type hides the sensitive values below, so any part of it may be one.
        yield path


def _covered(value: Any, places: frozenset[Path], path: Path) -> Any:
    if path in places:
        return HIDDEN
    if isinstance(value, Mapping):
        return {name: _covered(part, places, (*path, name)) for name, part in value.items()}
    if isinstance(value, list):
        return [_covered(part, places, (*path, index)) for index, part in enumerate(value)]
    return value


def _of(schema: Any, keyword: str) -> Any:
    return schema.get(keyword) if isinstance(schema, Mapping) else None


def _property(schema: Any, name: str) -> Any:
    return _of(_of(schema, "properties"), name)


def _at(public: Any, step: Any) -> Any:
    if isinstance(public, Mapping):
        return public.get(step)
    return public[step] if isinstance(public, list) and isinstance(step, int) and step < len(public) else None


def _is_object(schema: Any, public: Any) -> bool:
    return isinstance(_of(schema, "properties"), Mapping) or isinstance(public, Mapping)


def _is_array(schema: Any, public: Any) -> bool:
    return isinstance(_of(schema, "items"), Mapping) or isinstance(public, list)


def _is_marked(schema: Any) -> bool:
    return _of(schema, MARK) is True


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
