"""What a browser would make of an HTML page, as far as tests ask."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "input", "wbr", "hr", "img"}
Attributes = dict[str, str]


@dataclass
class Element:
    """An element, its attributes, its children, and the text directly in it and below."""

    tag: str
    attributes: Attributes
    children: list["Element | str"] = field(default_factory=list)

    def find(self, tag: str = "", **wanted: str) -> list["Element"]:
        """All elements below with this tag and these attributes; `class_` is one of the classes."""
        class_ = wanted.pop("class_", "")
        found = []
        for child in self.children:
            if isinstance(child, str):
                continue
            classes = child.attributes.get("class", "").split()
            if (
                (not tag or child.tag == tag)
                and (not class_ or class_ in classes)
                and all(child.attributes.get(k.replace("_", "-")) == v for k, v in wanted.items())
            ):
                found.append(child)
            found += (
                child.find(tag, class_=class_, **wanted) if class_ else child.find(tag, **wanted)
            )
        return found

    @property
    def text(self) -> str:
        """All text below, in order."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)


class Page(HTMLParser):
    """Parses a page strictly: every element that is opened must be closed, in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self._open = [self.root]
        self.feed(text)
        self.close()
        assert self._open == [self.root], [element.tag for element in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        assert len(element.attributes) == len(attrs), f"an attribute twice: {attrs}"
        self._open[-1].children.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def parse(text: str) -> Element:
    """The page's root."""
    return Page(text).root
