"""The command line: one file a verb, found by listing this folder."""
