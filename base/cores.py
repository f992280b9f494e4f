"""How many cores this process may use: its affinity, and the limit of its control group."""

import os
from math import ceil
from pathlib import Path

_GROUP = Path("/sys/fs/cgroup")
_most = 1 << 20


def limit_cores(most: int) -> None:
    """Let this process use at most so many cores, since other processes use the rest."""
    global _most
    _most = most


def cores(group: Path = _GROUP) -> int:
    """Return the number of threads or processes that run at once."""
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    return max(1, min(allowed, _most, ceil(_quota(group))))


def _quota(group: Path) -> float:
    """Return the cores whose time a container's limit amounts to; many if there is no limit."""
    try:  # version 2: "200000 100000", or "max 100000"
        quota, period = (group / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (group / "cpu" / "cpu.cfs_quota_us").read_text()
            period = (group / "cpu" / "cpu.cfs_period_us").read_text()
        except OSError:
            return os.cpu_count() or 1
    try:
        limit = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        limit = 0
    return limit if limit > 0 else os.cpu_count() or 1
