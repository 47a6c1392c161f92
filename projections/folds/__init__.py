"""Pure folds: how each event changes the rows that people read.

A row is a flat dict with exactly the columns of its table, typed as its module of `projections.tables` declares it:
nested JSON is canonical text, times are milliseconds since the epoch, booleans are 0 or 1. Folds never change the
row that they are given: an effect (`projections.folds.events`) changes a copy in place.
`*_json` turns a row into the resource that the APIs return.

The projector and the gateway's live tail use the same folds, so a view and a socket cannot disagree.
"""
