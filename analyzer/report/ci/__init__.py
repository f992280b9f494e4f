"""Formats of the findings of a check: one file each, with `render(document) -> str`, as listed.

Sources: the schema of SARIF 2.1.0 (OASIS); GitLab's documentation of Code Quality reports; the
JUnit schema of Jenkins' xUnit plugin; GitHub's documentation of workflow commands.
"""
