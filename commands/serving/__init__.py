"""`cutrace serve`: a report that follows its source, from a server on this machine alone.

`watch` notices saved files, `live` keeps the last good result and the error of the present one,
`server` answers a browser that knows the token.
"""
