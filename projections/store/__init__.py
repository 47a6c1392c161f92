"""The store of the views: rows and the log offsets they were made from, in one transaction. SQLite or PostgreSQL."""
