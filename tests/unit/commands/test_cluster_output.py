"""What a cluster says is not in the answer."""

from collections.abc import Callable
from concurrent.futures import Future
from types import ModuleType
from typing import Any

import pytest

from cutrace.commands.running import executor


class Reference:
    """What Ray's stand-in says of a call that is done."""

    def __init__(self, value: object) -> None:
        self.value = value

    def future(self) -> Future[Any]:
        """A future that is done."""
        found: Future[Any] = Future()
        found.set_result(self.value)
        return found


class Remote:
    """A function of Ray's stand-in."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call

    def remote(self, *arguments: Any) -> Reference:
        """Say what Ray says of a worker, and do the call."""
        print("(raylet) A worker died or was killed while executing a task")
        return Reference(self.call(*arguments))


def stand_in(ended: list[str]) -> ModuleType:
    """A module that does as Ray, here and at once."""
    ray = ModuleType("ray")
    vars(ray).update(
        init=lambda **where: print("(autoscaler) started", where),
        remote=Remote,
        shutdown=lambda: ended.append("shutdown"),
    )
    return ray


def test_what_ray_prints_of_its_workers_goes_to_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended: list[str] = []
    monkeypatch.setattr(executor, "import_module", lambda name: stand_in(ended))
    with executor.named_executor("ray", 2) as on:
        assert on.submit(divmod, 7, 2).result() == (3, 1)
    print("the answer")
    out, err = capsys.readouterr()
    assert out == "the answer\n"
    assert "A worker died" in err
    assert "'num_cpus': 2" in err
    assert ended == ["shutdown"]
