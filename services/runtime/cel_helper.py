"""Evaluates conditions, and schemas on arguments, that may run for ever, in a process that can be killed.

Small work is done in this process. Larger work goes to a helper process with a time limit. When the limit is
exceeded, the helper is killed and the call is held (for a condition) or its arguments do not fit (for a schema). A
spare helper that is already running replaces it, so that one tenant's work does not delay the others; another spare
is started. If the spare is not ready yet, calls with larger conditions are held, and senders of large arguments are
told to retry. Text that had a helper killed twice within a minute is not tried again for the rest of it (`overruns`).

Small work is summed over all conditions on a call, and larger work is charged to its tenant (`shares`): so many
conditions that are each small, or many calls, do not take other tenants' verdicts away.
"""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import msgspec

from schemas.plain_schema import surely_fits
from services.domain.input_schema import MAX_COST as MAX_SCHEMA_COST
from services.domain.input_schema import NotNow, misfit, unchecked
from services.domain.input_schema import cost_of as cost_of_schema
from services.domain.policy import (
    Bindings,
    CompiledExpression,
    EvaluationFailed,
    ExpressionTooLarge,
    PolicyTimeout,
)
from services.domain.policy.cel import MAX_COST, cost_of, run
from services.runtime.frames import receive_frame, send_frame
from services.runtime.overruns import Overruns
from services.runtime.shares import Shares

BUDGET_MS = 250
# Work below this is no more than the rest of a decision: it is never charged or put off.
FREE_COST = 2_000
FREE_SCHEMA_COST = 200
SHARE_SPENT = "larger conditions and schemas of this tenant have used up their share of time for now"
BARRED = "it took too long twice within a minute and is not tried for now"


@dataclass(slots=True)
class _Helper:
    """A helper process, and whether it has reported that it is ready."""

    process: "subprocess.Popen[bytes]"
    connection: socket.socket
    ready: bool = False

    def stop(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.wait()


class CelHelper:
    """The decider's `Evaluator` (`evaluate`) and `SchemaCheck` (`misfit`); close it, or use it in a `with`."""

    def __init__(self, budget_ms: int = BUDGET_MS, shares: Shares | None = None) -> None:
        self._budget_ms = budget_ms
        self._lock = threading.Lock()
        self._overruns = Overruns(time.monotonic)
        self._shares = Shares(time.monotonic) if shares is None else shares
        self._helper = _launched()
        self._left = False
        # Started once the first one is ready, so that the decider's own start does not wait for it.
        self._spare: _Helper | None = None

    def evaluate(self, expression: CompiledExpression, bindings: Bindings) -> bool:
        """Evaluate in this process while all conditions on the call are certainly small, else in the helper.

        Raises:
            PolicyTimeout: the helper did not answer within the limit, or had exceeded it lately; or the tenant has
                used up its share.
            EvaluationFailed: an error, or an answer that is neither true nor false.
        """
        tenant = _tenant_of(bindings)
        is_spent = self._shares.is_spent(tenant)
        if is_spent and bindings.has_more_than(FREE_COST):
            raise PolicyTimeout(SHARE_SPENT)
        began_s = time.monotonic()
        bindings.spent += cost_of(expression, bindings)
        if bindings.spent <= FREE_COST:
            return run(expression, bindings)
        if is_spent:
            raise PolicyTimeout(SHARE_SPENT)
        try:
            return self._larger(expression, bindings, tenant)
        finally:
            self._shares.charge(tenant, time.monotonic() - began_s)

    def _larger(self, expression: CompiledExpression, bindings: Bindings, tenant: str) -> bool:
        if bindings.spent <= MAX_COST:
            return run(expression, bindings)
        if bindings.resolve_path is not None and "real_path" in expression.functions:
            raise ExpressionTooLarge(
                "real_path() with links cannot be evaluated in the helper; use smaller arguments"
            )
        if bindings.waited_s * 1000 >= self._budget_ms:
            raise PolicyTimeout(
                f"the conditions on this call together did not end within {self._budget_ms} ms"
            )
        if self._overruns.bars(tenant, expression.source):
            raise PolicyTimeout(BARRED)
        began_s = time.monotonic()
        try:
            return self._answer(_question(expression, bindings), tenant, expression.source) is True
        finally:
            bindings.waited_s += time.monotonic() - began_s

    def misfit(self, schema_text: str, arguments: Any, tenant: str = "") -> str | None:
        """The reason why arguments do not fit a schema: found here if it is little work, else in the helper.

        Returns:
            `JSON path: reason`, also if no answer came within the limit; None if they fit.

        Raises:
            NotNow: the helper is starting because of other work; this schema has had it killed too often; or the
                tenant has used up its share.
        """
        if surely_fits(schema_text, arguments):
            return None
        cost = cost_of_schema(schema_text, arguments)
        if cost <= FREE_SCHEMA_COST:
            return misfit(schema_text, arguments)
        if self._shares.is_spent(tenant):
            raise NotNow(SHARE_SPENT)
        began_s = time.monotonic()
        try:
            return (
                misfit(schema_text, arguments)
                if cost <= MAX_SCHEMA_COST
                else self._larger_misfit(schema_text, arguments, tenant)
            )
        finally:
            self._shares.charge(tenant, time.monotonic() - began_s)

    def _larger_misfit(self, schema_text: str, arguments: Any, tenant: str) -> str | None:
        if self._left:
            raise NotNow("the helper process belongs to another process")
        if self._overruns.bars(tenant, schema_text):
            raise NotNow(BARRED)
        try:
            with self._lock:
                self._await_ready(time.monotonic())
        except (EvaluationFailed, PolicyTimeout) as error:
            raise NotNow(str(error)) from error
        try:
            question = msgspec.json.encode({"schema": schema_text, "arguments": arguments})
            found = self._answer(question, tenant, schema_text)
        except (EvaluationFailed, PolicyTimeout) as error:
            return unchecked(str(error))
        return None if found is None else str(found)

    def leave(self) -> None:
        """Ask the helper nothing more: it belongs to the process from which this one was forked."""
        self._left = True

    def _answer(self, question: bytes, tenant: str, text: str) -> object:
        if self._left:
            raise PolicyTimeout("the helper process belongs to another process")
        with self._lock:
            # The decider does not wait for a helper that is starting: the call is held at once.
            self._await_ready(time.monotonic())
            asked = self._helper
            try:
                reply = self._ask(question)
            finally:
                if self._helper is not asked:
                    self._overruns.note(tenant, text)
        if "error" in reply:
            raise EvaluationFailed(str(reply["error"]))
        return reply["answer"]

    def wait_ready(self, timeout_ms: int = 10_000) -> None:
        """Wait until the helper process can answer.

        Raises:
            PolicyTimeout: it did not start in time.
        """
        with self._lock:
            self._await_ready(time.monotonic() + timeout_ms / 1000)

    def _ask(self, question: bytes) -> dict[str, object]:
        deadline = time.monotonic() + self._budget_ms / 1000
        try:
            self._helper.connection.settimeout(_remaining(deadline))
            send_frame(self._helper.connection, question)
            self._helper.connection.settimeout(_remaining(deadline))
            frame = receive_frame(self._helper.connection)
        except TimeoutError as error:
            self._restart()
            raise PolicyTimeout(f"it did not end within {self._budget_ms} ms") from error
        except OSError as error:
            self._restart()
            raise EvaluationFailed("the helper process ended; another one is starting") from error
        if not frame:
            self._restart()
            raise EvaluationFailed(
                "the helper process ended, possibly for lack of memory; another one is starting"
            )
        reply: dict[str, object] = msgspec.json.decode(frame)
        return reply

    def _await_ready(self, deadline: float) -> None:
        if self._helper.ready:
            return
        try:
            self._helper.connection.settimeout(_remaining(deadline))
            self._helper.ready = receive_frame(self._helper.connection) == b"ready"
        except TimeoutError as error:
            raise PolicyTimeout("the helper process is still starting") from error
        except OSError as error:
            raise EvaluationFailed("the helper process ended while it started") from error
        finally:
            # A helper that ended before it was ready will never be: start another for the next question.
            if not self._helper.ready and self._helper.process.poll() is not None:
                self._restart()
        if not self._helper.ready:
            raise EvaluationFailed("the helper process ended while it started")
        if self._spare is None:
            self._spare = _launched()

    def _restart(self) -> None:
        self._helper.stop()
        self._helper, self._spare = (self._spare, _launched()) if self._spare else (_launched(), None)

    def close(self) -> None:
        """Stop the helper process and its spare."""
        with self._lock:
            self._helper.stop()
            if self._spare is not None:
                self._spare.stop()

    def __enter__(self) -> "CelHelper":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _tenant_of(bindings: Bindings) -> str:
    execution = bindings.variables.get("execution")
    return str(execution.get("tenant", "")) if isinstance(execution, Mapping) else ""


def _launched() -> _Helper:
    connection, other = socket.socketpair()
    with other:
        command = [sys.executable, "-m", "services.runtime.cel_worker", str(other.fileno()), "2000"]
        process = subprocess.Popen(  # noqa: S603 (our own module)
            command, pass_fds=[other.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
        )
    return _Helper(process, connection)


def _remaining(deadline: float) -> float:
    # A timeout of zero would make the socket non-blocking.
    return max(0.001, deadline - time.monotonic())


def _question(expression: CompiledExpression, bindings: Bindings) -> bytes:
    own = Bindings(bindings.variables, bindings.now_ms, expression.shape.reads)
    question = {"source": expression.source, "variables": own.values(), "now_ms": bindings.now_ms}
    try:
        return msgspec.json.encode(question)
    except (ValueError, TypeError) as error:
        raise EvaluationFailed(f"the arguments cannot be handed to the helper: {error}") from error
