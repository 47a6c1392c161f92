"""The one turn that a scripted gateway gives to a worker."""

TURN = {
    "conversation_id": "c",
    "turn_id": "m",
    "agent": "bot",
    "text": "hello",
    "sent_by": "u",
    "status": "claimed",
}
