"""SARIF, for GitHub code scanning and editors."""

import json
from typing import Any

from ..document import Document, Finding

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(document: Document) -> str:
    """Return a run with a result per failure, and a notification per check that could not run."""
    failed = [each for each in document.failures if not each.is_error]
    errors = [each for each in document.failures if each.is_error]
    rules = [{"id": name} for name in dict.fromkeys(each.rule for each in failed)]
    invocation: dict[str, Any] = {"executionSuccessful": not errors}
    if errors:
        invocation["toolExecutionNotifications"] = [*map(_result, errors)]
    run = {
        "tool": {"driver": {"name": "cutrace", "rules": rules}},
        "invocations": [invocation],
        "results": [{"ruleId": each.rule, **_result(each)} for each in failed],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _result(finding: Finding) -> dict[str, Any]:
    where = {
        "artifactLocation": {"uri": finding.file},
        "region": {"startLine": finding.line},
    }
    return {
        "level": "error",
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": where}] if finding.line else [],
    }
