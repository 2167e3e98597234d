"""What the machine says: CPU seconds and peak memory of processes, cache flushes of disks. Linux only."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_FLUSHES_FIELD: Final = 18


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far, in ticks of 10 ms; 0 when it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def peak_mib(pid: int) -> float:
    """The largest resident size a process has had."""
    return _status_kib(pid, "VmHWM") / 1024


def resident_kib(pid: int) -> int:
    """What a process holds in memory now."""
    return _status_kib(pid, "VmRSS")


def _status_kib(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0


def disk_flushes() -> int:
    """Cache flushes that reached the disks of this machine, by whomever: the device counts, not a process."""
    total = 0
    for line in Path("/proc/diskstats").read_text().splitlines():
        fields = line.split()
        if len(fields) > _FLUSHES_FIELD and not (Path("/sys/class/block") / fields[2] / "partition").exists():
            total += int(fields[_FLUSHES_FIELD])
    return total


@dataclass(frozen=True, slots=True)
class Spent:
    """What a piece of work took: wall and CPU seconds (all processes), disk flushes of the machine."""

    wall_s: float
    cpu_s: float
    flushes: int

    def per_step(self, steps: int) -> dict[str, float]:
        """The figures of a row that did so many steps."""
        return {
            "steps_per_s": steps / self.wall_s,
            "cpu_ms_per_step": self.cpu_s * 1000 / steps,
            "fsyncs_per_step": self.flushes / steps,
        }


class Meter:
    """Runs from its creation; `stop` says what was spent since. This process is always counted in."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = tuple(pids)
        self._cpu = self._all_cpu()
        self._flushes = disk_flushes()
        self._began = time.perf_counter()

    def stop(self) -> Spent:
        wall = time.perf_counter() - self._began
        return Spent(wall, self._all_cpu() - self._cpu, disk_flushes() - self._flushes)

    def _all_cpu(self) -> float:
        return time.process_time() + sum(map(cpu_seconds, self._pids))


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory_kib = int(Path("/proc/meminfo").read_text().split()[1])
    return {
        "cpus": os.cpu_count(),
        "cpu": model,
        "memory_gib": round(memory_kib / 1024**2, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 2),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def percentile(values: Sequence[float], part: float) -> float:
    """The value that so large a part of all values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(part * (len(ordered) - 1)))]
