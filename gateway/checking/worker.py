"""The process that reads definitions for a gateway: one question at a time on standard input, its answer on output.

Tools and principals are read here. A policy is read, and a call assessed, by the engine that judges, which no gateway
imports: `ops.definition_reader`, which assembles the process, passes in what answers such questions. The process ends
when its gateway closes the pipe, and by the kernel's alarm if a question takes too long.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import orjson

from gateway.checking.documents import text_of
from gateway.problems import Problem

LENGTH_BYTES = 4
READY = b"ready"
MEMORY_LIMIT_BYTES = 1 << 30
LIMIT_S = 30


Question = dict[str, Any]
# What the engine answers, by the kind of the question.
Engine = Mapping[str, Callable[[Question], dict[str, Any]]]


def answer(question: Question, engine: Engine) -> dict[str, Any]:
    """Return `{text}`, or `{code, detail, fields}` of a refusal; of a question for the engine, its answer."""
    try:
        if (of_engine := engine.get(question["kind"])) is not None:
            return of_engine(question)
        return {"text": text_of(question["kind"], question["name"], question["given"])}
    except Problem as problem:
        return {"code": str(problem.code), "detail": problem.detail, "fields": problem.fields}


def serve(questions: BinaryIO, answers: BinaryIO, engine: Engine) -> None:
    """Answer questions until the other side closes its end."""
    answers.write(READY)
    answers.flush()
    while header := questions.read(LENGTH_BYTES):
        size = int.from_bytes(header, "big")
        asked = questions.read(size)
        if len(asked) < size:
            return
        question = orjson.loads(asked)
        signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
        content = orjson.dumps(answer(question, engine))
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(len(content).to_bytes(LENGTH_BYTES, "big") + content)
        answers.flush()


def main(engine: Engine) -> None:
    """Serve with limited memory, and without the terminal's interrupts."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer, engine)
    except BrokenPipeError:
        # The gateway has gone: there is no reader, even for output that the interpreter flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
