"""A trace writer for whole programs: launches beyond the size limit are left out, with a note."""

import os

from .writer import TraceWriter


class BoundedWriter(TraceWriter):
    """As TraceWriter; the launch with which the trace would be larger than `max_bytes`, and those
    after it, are left out of it.

    Launches that are run and not recorded are counted: those that were `not_chosen`, and those
    `without_room`. Once the trace is closed, `left_out` says it in a sentence.
    """

    def __init__(self, path: str | os.PathLike[str], max_bytes: int) -> None:
        super().__init__(path, max_bytes, owns_columns=True)
        self._limit.spares = True
        self.not_chosen = 0
        self.without_room = 0

    @property
    def has_room(self) -> bool:
        """Whether the next launch may be recorded: as far as is known by now."""
        return self._limit.full_at is None

    @property
    def bytes(self) -> int:
        """How large the trace is by now."""
        return self._limit.used

    @property
    def count(self) -> int:
        """How many launches it has."""
        return len(self._launches)

    @property
    def left_out(self) -> str:
        """The launches that were run and are not in the trace, once it is closed."""
        return self._left_out

    def close(self) -> None:
        """Drop the launches that do not fit, then as TraceWriter."""
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
