"""The rules of the Compose Specification that docker-compose.yml leans on, applied to its parsed content."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

TOP_LEVEL = {"name", "services", "networks", "volumes", "configs", "secrets", "version", "include"}
SERVICE = {
    "build", "command", "configs", "depends_on", "entrypoint", "environment", "healthcheck", "image", "networks",
    "ports", "profiles", "restart", "secrets", "user", "volumes", "working_dir",
}  # fmt: skip
HEALTHCHECK = {"test", "interval", "timeout", "retries", "start_period", "start_interval", "disable"}
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}
RESTARTS = re.compile(r"no|always|unless-stopped|on-failure(:\d+)?")
DURATION = re.compile(r"(\d+(us|ms|s|m|h))+")
PORT = re.compile(r"(\d{1,3}(\.\d{1,3}){3}:)?(\d{1,5}:)?\d{1,5}(/(tcp|udp))?")
IMAGE = re.compile(r"[a-z0-9]+([._/-][a-z0-9]+)*(:[\w][\w.-]*)?")
VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?P<operator>:[-?])?(?P<word>[^}]*)\}")


def interpolate(text: str, variables: Mapping[str, str]) -> str:
    """Substitute `${NAME}`, `${NAME:-default}` and `${NAME:?message}`.

    Raises:
        KeyError: A variable without a value or default.
    """

    def value(found: re.Match[str]) -> str:
        given = variables.get(found["name"])
        if given:
            return given
        if found["operator"] == ":-":
            return found["word"]
        raise KeyError(found["word"] or found["name"])

    return VARIABLE.sub(value, text)


def violations(document: Mapping[str, Any]) -> Iterator[str]:
    """Every rule that a document breaks, one sentence each."""
    unknown = {key for key in document if key not in TOP_LEVEL and not key.startswith("x-")}
    yield from (f"unknown top-level element {key}" for key in sorted(unknown))
    for name, service in document["services"].items():
        yield from (f"{name}: {text}" for text in _service(service, document))


def _service(service: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"unknown attribute {key}" for key in sorted(set(service) - SERVICE))
    if not IMAGE.fullmatch(service.get("image", "")):
        yield f"image {service.get('image')!r} is not a reference"
    if not RESTARTS.fullmatch(service.get("restart", "no")):
        yield f"restart {service['restart']!r} is not a policy"
    yield from _references(service, document)
    yield from _dependencies(service, document["services"])
    yield from _environment(service.get("environment", {}))
    yield from _healthcheck(service.get("healthcheck", {}))
    yield from (
        f"port {port!r} is malformed" for port in service.get("ports", ()) if not PORT.fullmatch(port)
    )
    for words in (service.get("command", []), service.get("entrypoint", [])):
        if not all(isinstance(word, str) for word in words):
            yield f"{words} holds something that is not text"


def _references(service: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[str]:
    named = {
        "networks": list(service.get("networks", ())),
        "configs": [config["source"] for config in service.get("configs", ())],
        "volumes": [volume.partition(":")[0] for volume in service.get("volumes", ())],
    }
    for kind, names in named.items():
        declared = document.get(kind, {})
        yield from (
            f"{kind} {name} is not declared" for name in names if name[0] not in "./" and name not in declared
        )


def _dependencies(service: Mapping[str, Any], services: Mapping[str, Any]) -> Iterator[str]:
    for name, terms in service.get("depends_on", {}).items():
        if name not in services:
            yield f"depends on {name}, which is no service"
        elif terms.get("condition") not in CONDITIONS:
            yield f"waits for {name} on an unknown condition"
        elif terms["condition"] == "service_healthy" and not services[name].get("healthcheck"):
            yield f"waits for the health of {name}, which has no check"


def _environment(environment: Mapping[str, Any]) -> Iterator[str]:
    for name, value in environment.items():
        if not isinstance(value, str):
            yield f"environment {name} is {type(value).__name__}, not text"


def _healthcheck(check: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"unknown healthcheck attribute {key}" for key in sorted(set(check) - HEALTHCHECK))
    if check and check["test"][0] not in ("CMD", "CMD-SHELL", "NONE"):
        yield f"healthcheck test begins with {check['test'][0]}"
    for key in ("interval", "timeout", "start_period"):
        if key in check and not DURATION.fullmatch(check[key]):
            yield f"{key} {check[key]!r} is no duration"
