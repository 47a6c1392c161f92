"""The WebSocket's close codes."""

from __future__ import annotations

NOT_AUTHENTICATED, NOT_AUTHORISED, TOO_FAST, TRY_LATER = 4401, 4403, 1008, 1013
# An unexpected error: the traceback is in the gateway's log.
FAILED = 1011
# Sent by the server itself when it shuts down (gateway/server/websocket.py).
RESTARTING = 1012
