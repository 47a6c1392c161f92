"""Definitions to be published: read and compiled in separate processes, within a time limit."""
