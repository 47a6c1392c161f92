"""Frames on a socket between two of our own processes: a length of four bytes, then the content."""

import socket

LENGTH_BYTES = 4


def send_frame(connection: socket.socket, content: bytes) -> None:
    """Send one frame; the socket's timeout applies."""
    connection.sendall(len(content).to_bytes(LENGTH_BYTES, "big") + content)


def receive_frame(connection: socket.socket) -> bytes:
    """Receive one frame; empty if the other side closed. The socket's timeout applies to each part."""
    header = _receive(connection, LENGTH_BYTES)
    return _receive(connection, int.from_bytes(header, "big")) if header else b""


def _receive(connection: socket.socket, count: int) -> bytes:
    content = bytearray()
    while len(content) < count:
        part = connection.recv(count - len(content))
        if not part:
            return b""
        content += part
    return bytes(content)
