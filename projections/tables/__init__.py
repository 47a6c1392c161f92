"""The tables of the views, each declared once.

A class of a module here is a row: its annotations declare the columns in their order, with type, whether one can be
null, its meaning (PostgreSQL's comments and docs/columns.md) and how it reads as JSON. `TableOf` adds the key,
indices and merges. A table that a module here declares is created, written, compared and documented with the others
(`projections.store.tables`).
"""
