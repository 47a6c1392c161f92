"""What the views are made of, each table declared once.

A class of a module here is a row: its annotations say the columns in their order, with type, whether one may be
null, what it means (PostgreSQL's comments and docs/columns.md) and how it reads as JSON. `TableOf` adds the key,
indices and merges. A table that a module here declares is made, written, compared and documented with the others
(`projections.store.tables`).
"""
