"""What a person is shown: text with nothing hidden in it, and the view of a hold as one fixed document.

All of it is part of the log's contract: a view's digest is in the log, so version 1 renders a text always the same.
Its tables are therefore its own, and do not depend on a library's or interpreter's edition of Unicode.
"""
