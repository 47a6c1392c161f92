"""The server's commands of `placet`; the client loads them through the entry point group `placet.commands`."""
