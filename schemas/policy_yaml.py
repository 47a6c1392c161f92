"""Policies as people write them: YAML. Published documents are JSON, and need no reader of YAML."""

from typing import Any

from schemas.policy_problems import PolicyRefused, Problem
from schemas.strict_yaml import MalformedYaml, load_yaml


def policy_value(text: str) -> Any:
    """The value of a YAML (or JSON) text, whatever its form is.

    Raises:
        PolicyRefused: it is not YAML.
    """
    try:
        return load_yaml(text)
    except MalformedYaml as error:
        where = f"line {error.line}, column {error.column}"
        raise PolicyRefused((Problem(path=where, code="malformed", message=error.message),)) from error
