"""JSON: one object, for programs. A missing value is null."""

import json

from ..document import Document


def render(document: Document) -> str:
    """Return the fields, or else the rows as objects.

    The format of rows is `cutrace-VERB-1`: columns are appended without notice; a change or removal
    of one increments the number.
    """
    if document.fields:
        return json.dumps(document.fields(), indent=1) + "\n"
    assert document.rows
    head, rows = document.rows()
    objects = [dict(zip(head, row, strict=True)) for row in rows]
    return json.dumps({"format": f"cutrace-{document.name}-1", "rows": objects}, indent=1) + "\n"
