"""The versions of a hold's view, and what each began to show: a digest of the text stands in the log.

Version 2 begins with the run's request and shows more of what is hidden. Version 3 shows the spaces at the ends of
what stands without quotes, and tells a value `(none)` from one that is not there. Version 4 shows the marks that
paint over other characters.
"""

VERSION = 4
SHOWS_REQUEST_FROM = 2
HIDES_MORE_FROM = 2
SHOWS_ENDS_FROM = 3
SHOWS_COVERING_FROM = 4
