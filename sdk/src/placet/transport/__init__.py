"""How requests reach the gateway: over one WebSocket by default, over REST otherwise."""
