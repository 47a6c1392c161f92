"""The notifications file ready for use: each target with its secret, and the address at which people open a hold."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from schemas.policy_problems import Problem
from services.processors.notifications.apprise_channel import AppriseChannel, BadAddress
from services.processors.notifications.channel import Channel
from services.processors.notifications.document import (
    AppriseTarget,
    Delivery,
    Notification,
    NotificationsRefused,
    Target,
    WebhookTarget,
    When,
    read_document,
)
from services.processors.notifications.webhook import BadSecret, WebhookChannel, read_secret

SECRET_FILE_MAX_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One target of one notification. Its key names it: `finance/1` is the first of `finance`."""

    key: str
    when: When
    delivery: Delivery
    channel: Channel


@dataclass(frozen=True, slots=True)
class Notifications:
    """The endpoints of all notifications, and the address at which people open a hold."""

    endpoints: tuple[Endpoint, ...]
    link_base: str


class _SecretMissing(ValueError):
    """A variable or a file that should contain a secret is missing."""


def load_notifications(path: Path, environment: Mapping[str, str], link_base: str) -> Notifications:
    """Load a notifications file with its secrets.

    Args:
        path: the file; relative paths in it are relative to its directory.
        environment: where variables are looked up.
        link_base: the address at which people open a hold, if the file does not give one.

    Raises:
        NotificationsRefused: with every problem; no secret is shown.
    """
    document = read_document(path)
    secrets = _Secrets(path.absolute().parent, environment)
    made = [
        one
        for index, found in enumerate(document.notifications)
        for one in _endpoints(found, f"notifications[{index}]", secrets)
    ]
    if problems := tuple(one for one in made if isinstance(one, Problem)):
        raise NotificationsRefused(problems)
    endpoints = tuple(one for one in made if isinstance(one, Endpoint))
    return Notifications(endpoints, document.link_base or link_base)


def _endpoints(found: Notification, path: str, secrets: "_Secrets") -> Iterator[Endpoint | Problem]:
    for number, target in enumerate(found.to):
        try:
            channel = _channel(target, found.delivery, secrets)
        except (_SecretMissing, BadSecret, BadAddress) as error:
            yield Problem(path=f"{path}.to[{number}]", code="secret", message=str(error))
        else:
            yield Endpoint(f"{found.id}/{number + 1}", found.when, found.delivery, channel)


def _channel(target: Target, delivery: Delivery, secrets: "_Secrets") -> Channel:
    match target:
        case Target(webhook=WebhookTarget() as webhook):
            secret = secrets.read(webhook.secret_env, webhook.secret_file)
            return WebhookChannel(webhook.url, read_secret(secret), delivery.timeout_seconds)
        case Target(apprise=AppriseTarget() as found):
            return AppriseChannel(secrets.read(found.url_env, found.url_file), delivery.timeout_seconds)
    raise TypeError("a target is one of webhook and apprise")


@dataclass(frozen=True, slots=True)
class _Secrets:
    """The places of secrets: variables and files."""

    directory: Path
    environment: Mapping[str, str]

    def read(self, variable: str | None, file: str | None) -> str:
        if variable is not None:
            return self._of_variable(variable)
        return self._of_file(self.directory / (file or ""))

    def _of_variable(self, name: str) -> str:
        if text := self.environment.get(name, "").strip():
            return text
        raise _SecretMissing(f"the variable {name} is not set; set it where Placet is started")

    def _of_file(self, path: Path) -> str:
        try:
            with path.open("rb") as opened:
                text = opened.read(SECRET_FILE_MAX_BYTES).decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise _SecretMissing(f"the file {path} cannot be read ({type(error).__name__})") from None
        if not text:
            raise _SecretMissing(f"the file {path} is empty")
        return text
