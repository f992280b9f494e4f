"""Options that several verbs share: replay, recording, views, completion in the shell.

A verb is a file of `commands`, not of this folder.
"""
