"""`cutrace serve`: a report that follows its source, from a server on this machine alone.

`live` watches the source, keeps the last good result and the present error, and serves a browser
that knows the token.
"""
