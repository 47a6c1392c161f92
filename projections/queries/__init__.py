"""Reading the views: what a door may ask of them, always within one tenant and project.

`views.open_views(url)` gives `Views`; its `read` runs a question in one moment of the database and returns the
answer together with the positions of that very moment. The questions are the functions of `resources`,
`lists`, `history` and `definitions`; each takes a `Moment` first.
"""
