"""GitLab's Code Quality report: a limit broken by several launches is one finding."""

import json
from hashlib import blake2b

from ..document import Document, Finding


def render(document: Document) -> str:
    """Return a list of the failures, each with a fingerprint that it keeps."""
    findings: dict[str, dict[str, object]] = {}
    for each in document.failures:
        fingerprint = blake2b(each.mark.encode(), digest_size=16).hexdigest()
        finding: dict[str, object] = {
            "description": each.claim,
            "check_name": each.rule,
            "fingerprint": fingerprint,
            "severity": _severity(each),
            "location": {
                "path": each.file or document.title,
                "lines": {"begin": each.line or 1},
            },
        }
        findings.setdefault(fingerprint, finding)
    return json.dumps([*findings.values()], indent=1)


def _severity(finding: Finding) -> str:
    if finding.is_error:
        return "blocker"
    return "major" if finding.kind == "budget" else "critical"
