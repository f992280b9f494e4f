"""A trace writer with a size limit: launches beyond it are left out, with a note."""

import os

from .writer import TraceWriter


class BoundedWriter(TraceWriter):
    """A TraceWriter that drops the launch with which the trace would exceed `max_bytes`, and all
    later ones.

    Launches that run without being recorded are counted: `not_chosen` were filtered out,
    `without_room` exceeded the limit. After `close`, `left_out` describes them in a sentence.
    """

    def __init__(self, path: str | os.PathLike[str], max_bytes: int) -> None:
        super().__init__(path, max_bytes, owns_columns=True)
        self._limit.spares = True
        self.not_chosen = 0
        self.without_room = 0

    @property
    def has_room(self) -> bool:
        """Return whether the next launch may be recorded, judging by the bytes written so far."""
        return self._limit.full_at is None

    @property
    def bytes(self) -> int:
        """Return the current size of the trace."""
        return self._limit.used

    @property
    def count(self) -> int:
        """Return the number of launches in the trace."""
        return len(self._launches)

    @property
    def left_out(self) -> str:
        """Return a sentence on the launches that ran without being recorded, once the trace is
        closed.
        """
        return self._left_out

    def close(self) -> None:
        """Drop the launches that exceed the limit, then close like TraceWriter."""
        if not self._unfinished:
            self._background.finish()
            self._drop_last()
            self._left_out = "; ".join(self._sentences())
        super().close()

    def _drop_last(self) -> None:
        if (first := self._limit.full_at) is None:
            return
        self.without_room += len(self._launches) - first
        for number in range(first, len(self._launches)):
            self._remove(number)
        del self._launches[first:]
        self._events = [event for event in self._events if event.launch < first]

    def _sentences(self) -> list[str]:
        sentences = []
        if self.not_chosen:
            sentences.append(f"{_launches(self.not_chosen)} run and not chosen to be recorded")
        if self.without_room:
            sentences.append(
                f"{_launches(self.without_room)} run and left out: with the first of them the trace"
                f" would be larger than the {self._limit.limit} bytes of --max-trace-size"
            )
        return sentences


def _launches(count: int) -> str:
    return f"{count} launch was" if count == 1 else f"{count} launches were"
