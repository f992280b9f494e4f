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

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __str__(self) -> str:
        from ...analyzer.report import render
        from ...analyzer.report.view import View

        return render(self.document(View()), "table").rstrip()

    def _repr_html_(self) -> str:
        from ...analyzer.report import render
        from ...analyzer.report.view import View

        return render(self.document(View()), "html")

    def _rows_as_frame(self, types: str) -> "pl.DataFrame":
        """Return the rows of the document as a frame; `types` are those of polars, by column."""
        import polars as pl

        from ...analyzer.report.view import View

        rows = self.document(View()).rows
        assert rows
        head, values = rows()
        kinds = [pl.List(pl.UInt64) if t == "List" else getattr(pl, t) for t in types.split()]
        schema = dict(zip(head, kinds, strict=True))
        return pl.DataFrame([*values], schema, orient="row", strict=False)
