"""Rules of advice: one file a rule, each with `find(evidence) -> Iterator[Finding]`.

A rule is found by listing this folder; its name is the file's.
"""
