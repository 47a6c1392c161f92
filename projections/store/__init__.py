"""The store of the views: rows and the offsets they stand for, in one transaction. SQLite or PostgreSQL."""
