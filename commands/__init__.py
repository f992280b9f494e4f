"""The command line: one file per verb; the verbs are found by listing this folder."""
