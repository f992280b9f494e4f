"""Answers of verbs: sequences that are text, a notebook's view and a frame, by their documents."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import polars as pl

    from ...analyzer.report.document import Document
    from ...analyzer.report.view import View

Item = TypeVar("Item")


class Answer(Sequence[Item]):
    """A sequence of `items`, which has a document."""

    @property
    @abstractmethod
    def items(self) -> Sequence[Item]:
        """The parts of the answer."""

    @abstractmethod
    def document(self, view: "View") -> "Document":
        """Return the answer as a document."""

    def frame(self) -> "pl.DataFrame":
        """Return the rows of the document."""
        return self._plain().frame()

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __str__(self) -> str:
        from ...analyzer.report import render

        return render(self._plain(), "table").rstrip()

    def _repr_html_(self) -> str:
        from ...analyzer.report import render

        return render(self._plain(), "html")

    def _plain(self) -> "Document":
        from ...analyzer.report.view import View

        return self.document(View())
