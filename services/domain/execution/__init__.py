"""One run of an agent: its calls, holds and requests, decided and folded."""
