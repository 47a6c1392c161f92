"""The server's half of the `placet` command, added to the client's by the group `placet.commands`."""
