"""Messages by e-mail, Slack, Teams and others, through apprise: one address, one thread, a time limit."""

import asyncio
import logging
from concurrent.futures import Future, ThreadPoolExecutor

import apprise
from apprise.plugins.email import NotifyEmail

from services.processors.notifications.channel import Undelivered
from services.processors.notifications.refusal import Said, Secrets, is_permanent, reason
from services.processors.notifications.render import RenderedMessage


class BadAddress(ValueError):
    """An address of apprise is not valid; the message does not show it."""


class AppriseChannel:
    """Blocking calls of one target, in its own thread, one at a time."""

    def __init__(self, url: str, timeout_s: float) -> None:
        """Prepare it.

        Args:
            url: an address of apprise; it may contain secrets and is never shown.
            timeout_s: the time limit of a try.

        Raises:
            BadAddress: the address is not valid for apprise.
        """
        # No files, redirects or threads of apprise's own, and no waits or tries in addition to ours.
        asset = apprise.AppriseAsset(
            app_id="Placet",
            app_desc="Placet",
            app_url="",
            async_mode=False,
            http_redirects=False,
            service_timeout=0,
            storage_mode="memory",
            pgp_autogen=False,
            pem_autogen=False,
        )
        target = apprise.Apprise.instantiate(url.strip(), asset=asset)
        if target is None:
            raise BadAddress(
                "apprise does not support this address, or a part of it is missing; see apprise's list of services"
            )
        self._apprise = apprise.Apprise(asset=asset)
        self._apprise.add(target)
        self._secrets = Secrets(url.strip())
        self._is_mail = isinstance(target, NotifyEmail)
        self._timeout_s = timeout_s
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="apprise")
        self._running: Future[Undelivered | None] | None = None

    @property
    def kind(self) -> str:
        """See `Channel`."""
        return "apprise"

    async def send(self, outgoing: RenderedMessage) -> None:
        """See `Channel`. A thread cannot be ended: while one still hangs, nothing is tried."""
        if self._running is not None and not self._running.done():
            raise Undelivered("the previous try has not ended yet", was_tried=False)
        self._running = self._thread.submit(self._notify, outgoing)
        try:
            async with asyncio.timeout(self._timeout_s):
                # Not shielded: a cancelled waiter is dropped, and a thread that outlives the loop notifies nothing.
                refusal = await asyncio.wrap_future(self._running)
        except TimeoutError:
            raise Undelivered(f"no answer within {self._timeout_s:g} s") from None
        if refusal is not None:
            raise refusal

    def _notify(self, outgoing: RenderedMessage) -> Undelivered | None:
        """Why it was not accepted; None if it was."""
        try:
            result = self._apprise.notify(
                title=outgoing.title,
                body=outgoing.text,
                body_format=apprise.NotifyFormat.TEXT,
                # Only at this level does apprise log what the other side said.
                log_level=logging.DEBUG,
            )
        except Exception as error:  # a plugin's bug must not stop the others
            # Only the error's name: its text may contain the address.
            logging.getLogger(__name__).warning("a plugin of apprise failed (%s)", type(error).__name__)
            return Undelivered(f"a plugin of apprise failed ({type(error).__name__})")
        if result:
            return None
        log = [Said(entry.level, entry.message) for found in result.results for entry in found.logs()]
        is_final = is_permanent(log, self._is_mail)
        return Undelivered(reason(log, self._secrets, self._is_mail), is_final=is_final)


def silence_libraries() -> None:
    """Keep addresses, which may contain tokens, out of the log: the senders log what matters."""
    for name in ("httpx", "httpcore", "urllib3", "requests"):
        logging.getLogger(name).setLevel(logging.WARNING)
    library = logging.getLogger("apprise")
    # It prints nothing, but gives the channel the reason why a message was not accepted.
    library.setLevel(logging.DEBUG)
    library.addHandler(logging.NullHandler())
    library.propagate = False
