"""Programs that start others: each process has the device, and one trace holds what all launch."""

import os
import socket
import time
from pathlib import Path

import pytest
from program_run import cutrace, record

from cutrace.tracer.program.server import LONGEST, Connections, Listener

SOURCE = """
#include <fcntl.h>
#include <unistd.h>
#include <sys/wait.h>

__global__ void put(int *out, int value) { out[threadIdx.x] = value; }

/* Most of the device's memory, which is there again when the one before it has ended. */
static int work(int value)
{
    int *d, host[32];
    size_t most = (size_t)60 << 30;
    CHECK(cudaMalloc(&d, most));
    for (int i = 0; i < 20; i++) {
        put<<<1, 32>>>(d, value + i);
        CHECK(cudaMemcpy(host, d, sizeof host, cudaMemcpyDeviceToHost));
        for (int lane = 0; lane < 32; lane++)
            if (host[lane] != value + i) return 1;
    }
    return 0;
}

int main(int count, char **words)
{
    if (count > 2) return work(atoi(words[2]));
    int together = count > 1 && !strcmp(words[1], "together"), status, failed = 0;
    for (int i = 0; i < (together ? 1 : 3); i++) {
        if (fork()) {
            wait(&status);
            failed |= status;
            continue;
        }
        for (int file = 3; file < 64; file++) fcntl(file, F_SETFD, FD_CLOEXEC);
        char value[8];
        sprintf(value, "%d", 100 * i);
        execl("/proc/self/exe", words[0], "child", value, NULL);
        _exit(3);
    }
    return failed ? 2 : 0;
}
"""


def test_processes_one_after_another_that_inherit_no_files(tmp_path: Path) -> None:
    done = record(tmp_path, SOURCE)
    assert done.status == 0, done.err
    launches = [each.launch for each in done.trace.launches]
    assert len(launches) == 60
    assert [launch.arguments[1].value for launch in launches[20:22]] == [100, 101]
    assert all(len(launch.arrays) == 1 for launch in launches)  # what has ended has no arrays


BUILDS = """
#include <fcntl.h>
#include <unistd.h>

__global__ void put(int *out) { *out = 1; }

/* A build system: what it starts is of a process group of its own. */
int main()
{
    int *d, child = fork();
    if (!child) {
        setpgid(0, 0);
        if (!fork()) dprintf(creat("pid", 0600), "%d", getpid());
        for (;;) pause();
    }
    CHECK(cudaMalloc(&d, 4));
    for (;;) { put<<<1, 1>>>(d); sleep(1); }
}
"""


def test_what_a_stopped_program_started_is_stopped_too(tmp_path: Path) -> None:
    done = record(tmp_path, BUILDS, options=["--timeout", "3"])
    assert "it was ended after 3" in done.err
    status = Path("/proc", (tmp_path / "pid").read_text(), "status")
    for _ in range(50):  # until init has collected it
        if not status.exists() or "State:\tZ" in status.read_text():
            return
        time.sleep(0.1)
    raise AssertionError("the grandchild still runs")


def test_processes_at_the_same_time(tmp_path: Path) -> None:
    (tmp_path / "both.sh").write_text("./app a 1 & first=$!; ./app b 1000 && wait $first\n")
    small = SOURCE.replace("(size_t)60 << 30", "1 << 20")
    assert record(tmp_path, small, "none", "7", options=("-o", "alone.cutrace")).status == 0
    done = cutrace(tmp_path, "nvcc", "app.cu", "-o", "app")
    assert done.status == 0, done.err
    done = cutrace(tmp_path, "record", "-o", "app.cutrace", "--", "sh", "both.sh")
    assert done.status == 0, done.err
    found = sorted(each.launch.arguments[1].value for each in done.trace.launches)
    assert found == [*range(1, 21), *range(1000, 1020)]


def test_the_socket_s_name_fits_and_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("d" * LONGEST)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    listener = Listener()
    place = Path(listener.name)
    assert place.is_socket()
    assert len(listener.name) <= LONGEST
    assert place.parent.stat().st_mode & 0o077 == 0
    listener.close()
    assert not place.parent.exists()
    assert not list(deep.iterdir())


def test_lines_are_heard_in_turn_and_before_the_end(tmp_path: Path) -> None:
    listener = Listener()
    memory, (here, there) = os.memfd_create("memory"), os.pipe()
    connections = Connections(listener.socket, memory)
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        for each in (one, other):
            each.connect(listener.name)
        os.write(there, b"end")
        assert connections.wait(here) is None
        one.send(b"1")
        other.send(b"2")
        heard = [connections.wait(here) for _ in range(4)]
    assert heard[0] is heard[2]
    assert heard[1] is heard[3]
    assert heard[0] is not heard[1]
    connections.close()
    listener.close()
    for file in (memory, here, there):
        os.close(file)
