"""`cutrace serve`: a report that follows its source, from a server on this machine alone.

`watch` sees when a file is saved, `live` holds the last good result and what is wrong with the
present one, `server` answers a browser that knows the token.
"""
