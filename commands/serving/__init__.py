"""`cutrace serve`: a report that follows its source, from a server on this machine only.

`live` holds the whole of it: it polls the files, keeps the last good result and the present error,
and serves browsers that know the token.
"""
