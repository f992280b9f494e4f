"""Options that several verbs share: replay, recording, views, shell completion.

This folder contains no verbs; those are the files of `commands`.
"""
