"""Reading the views: the queries that the APIs use, always within one tenant and project.

`views.open_views(url)` returns `Views`; its `read` runs a query in one snapshot of the database and returns the
answer together with the positions of that snapshot. The queries are the functions of `resources`,
`lists`, `history` and `definitions`; each takes a `Moment` first.
"""
