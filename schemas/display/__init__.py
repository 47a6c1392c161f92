"""What a person is shown: text without anything hidden in it, and the view of a hold as one fixed document.

All of it is part of the log's contract: a view's digest stands in the log, so what version 1 makes of a text never
changes. Its tables are therefore its own, and no library's or interpreter's edition of Unicode has a say in it.
"""
