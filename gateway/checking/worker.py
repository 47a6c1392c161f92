"""The process that reads definitions for a gateway: one question at a time on standard input, its answer on output.

Tools and principals are read here. A policy is read by the engine that judges by it, which no gateway has: whoever
puts the process together (`ops.definition_reader`) hands it in. The process ends when its gateway closes the pipe,
and by the kernel's alarm when a question outlives it.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

import orjson

from gateway.checking.documents import text_of
from gateway.problems import Problem

LENGTH_BYTES = 4
READY = b"ready"
MEMORY_LIMIT_BYTES = 1 << 30
LIMIT_S = 30


Question = dict[str, Any]
PolicyReader = Callable[[Question], dict[str, Any]]


def answer(question: Question, read_policy: PolicyReader) -> dict[str, Any]:
    """`{text}`, or `{code, detail, fields}` of a refusal; of a policy what its reader says."""
    try:
        if question["kind"] == "policy":
            return read_policy(question)
        return {"text": text_of(question["kind"], question["name"], question["given"])}
    except Problem as problem:
        return {"code": str(problem.code), "detail": problem.detail, "fields": problem.fields}


def serve(questions: BinaryIO, answers: BinaryIO, read_policy: PolicyReader) -> None:
    """Answer until the other side closes its end."""
    answers.write(READY)
    answers.flush()
    while header := questions.read(LENGTH_BYTES):
        size = int.from_bytes(header, "big")
        asked = questions.read(size)
        if len(asked) < size:
            return
        question = orjson.loads(asked)
        signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
        content = orjson.dumps(answer(question, read_policy))
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(len(content).to_bytes(LENGTH_BYTES, "big") + content)
        answers.flush()


def main(read_policy: PolicyReader) -> None:
    """Serve with little memory, and without the terminal's interrupts."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer, read_policy)
    except BrokenPipeError:
        # The gateway has gone: nobody is left to be answered, nor when the interpreter writes out what it holds.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
