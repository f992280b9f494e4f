"""JUnit XML: a test case per check, as CI servers list them."""

from xml.etree import ElementTree

from ..document import Document


def render(document: Document) -> str:
    """Return a test suite; a check that could not run is an error, not a failure."""
    findings = document.findings or ()
    errors = sum(each.is_error for each in findings)
    words = {
        "name": _xml(f"cutrace {document.title}"),
        "tests": str(len(findings)),
        "failures": str(len(document.failures) - errors),
        "errors": str(errors),
    }
    suite = ElementTree.Element("testsuite", words)
    for each in findings:
        names = {"classname": _xml(each.subject), "name": _xml(each.name)}
        case = ElementTree.SubElement(suite, "testcase", names)
        if not each.holds:
            tag, message = "error" if each.is_error else "failure", {"message": _xml(each.claim)}
            place = f"{each.file}:{each.line}" if each.line else ""
            text = each.message if place in each.message else f"{place}\n{each.message}"
            ElementTree.SubElement(case, tag, message).text = _xml(text)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, "unicode", xml_declaration=True)


def _xml(text: str) -> str:
    """Return text without the characters that XML forbids (XML 1.0, 2.2)."""
    return "".join(c if c in "\t\n" or " " <= c <= "\ud7ff" or c >= "\ue000" else "?" for c in text)
