"""Unambiguous YAML: no duplicate keys, no aliases, no tags, and only JSON's types (YAML 1.2 core words).

YAML 1.1 reads `no` as false, `010` as eight and `1:30` as ninety; such accidents must not change a rule's meaning.
Aliases are refused because a few lines of them can expand to gigabytes.
"""

import re
from typing import Any

import yaml

MAX_CHARS = 256 * 1024
# PyYAML's error for a file with more than one document.
_SECOND_DOCUMENT = "but found another document"


class MalformedYaml(ValueError):
    """The text is not unambiguous YAML; `line` and `column` count from 1."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


class _StrictLoader(yaml.SafeLoader):
    """A safe loader with only the implicit types added below."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 (PyYAML's interface)

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Refuse aliases and explicit tags, with their position."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise _at(event.start_mark, "aliases (*name) are not supported; write the value out")
        if getattr(event, "tag", None) not in (None, "!"):
            raise _at(event.start_mark, f"the tag {event.tag} is not supported; write a plain value")
        return super().compose_node(parent, index)


def _at(mark: Any, message: str) -> MalformedYaml:
    return MalformedYaml(message, mark.line + 1, mark.column + 1) if mark else MalformedYaml(message)


def _construct_mapping(loader: _StrictLoader, node: yaml.MappingNode) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str) or key == "<<":
            raise _at(key_node.start_mark, f"{key!r} cannot be a key; keys are plain words")
        if key in mapping:
            raise _at(key_node.start_mark, f"the key {key!r} appears twice; keep one of the two")
        mapping[key] = loader.construct_object(value_node, deep=True)
    return mapping


_SCALARS: tuple[tuple[str, str, str], ...] = (
    ("tag:yaml.org,2002:null", r"null|~|", "n~\0"),
    ("tag:yaml.org,2002:bool", r"true|false", "tf"),
    ("tag:yaml.org,2002:int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("tag:yaml.org,2002:float", r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", "-+0123456789"),
)
for _tag, _pattern, _first in _SCALARS:
    for _char in _first:
        _StrictLoader.yaml_implicit_resolvers.setdefault("" if _char == "\0" else _char, []).append(
            (_tag, re.compile(rf"^(?:{_pattern})$"))
        )
_StrictLoader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


def load_yaml(text: str) -> Any:
    """Read one YAML (or JSON) document.

    Args:
        text: at most 256 Ki characters.

    Returns:
        Values of JSON's types; None for an empty text.

    Raises:
        MalformedYaml: not YAML, or YAML that this module refuses as described above.
    """
    if len(text) > MAX_CHARS:
        raise MalformedYaml(f"longer than {MAX_CHARS} characters; split the document")
    try:
        return yaml.load(text, Loader=_StrictLoader)  # noqa: S506 (a SafeLoader that knows fewer types)
    except yaml.MarkedYAMLError as error:
        if error.problem == _SECOND_DOCUMENT:
            message = "a second document begins here; keep each in a file of its own"
            raise _at(error.problem_mark, message) from error
        raise _at(error.problem_mark, f"not YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, MalformedYaml):
            raise
        raise MalformedYaml(f"not YAML: {error}") from error
