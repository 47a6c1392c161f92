"""The helper process of `cel_helper`: answers one question at a time, with unlimited work.

Run as `python -m services.runtime.cel_worker FD LIMIT_MS`. It ends when its parent closes the socket. The kernel's
alarm ends it when an evaluation exceeds the limit, so that it cannot outlive a parent that was killed.
"""

import resource
import signal
import socket
import sys
from contextlib import suppress
from typing import Any

import msgspec

from services.domain.input_schema import misfit
from services.domain.policy import Bindings, EvaluationFailed
from services.domain.policy.cel import DoesNotCompile, compile_expression, run
from services.runtime import deferred_imports
from services.runtime.frames import receive_frame, send_frame

MEMORY_LIMIT_BYTES = 1 << 30


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Answer one question, `{source, variables, now_ms}` or `{schema, arguments}`: `{answer}` or `{error}`."""
    try:
        if "schema" in question:
            return {"answer": misfit(question["schema"], question["arguments"])}
        expression = compile_expression(question["source"])
        bindings = Bindings(question["variables"], question["now_ms"], expression.shape.reads)
        return {"answer": run(expression, bindings)}
    except (DoesNotCompile, EvaluationFailed, MemoryError) as error:
        return {"error": str(error) or type(error).__name__}


def main(descriptor: int, limit_ms: int) -> None:
    """Answer until the parent closes its end."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    # The default action ends the process even while the binding holds the interpreter lock.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    # Load now: the asker's time limit is for the answer, not for loading.
    deferred_imports.load()
    # If the parent was killed, there is nobody to answer or to report an error to: that also ends this process.
    with socket.socket(fileno=descriptor) as parent, suppress(ConnectionResetError, BrokenPipeError):
        send_frame(parent, b"ready")
        while frame := receive_frame(parent):
            signal.setitimer(signal.ITIMER_REAL, limit_ms / 1000)
            reply = msgspec.json.encode(answer(msgspec.json.decode(frame)))
            signal.setitimer(signal.ITIMER_REAL, 0)
            send_frame(parent, reply)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
