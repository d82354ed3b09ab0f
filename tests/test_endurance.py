"""Many publishes in one process, kills at any moment, and a disk that is really full."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dalenius
from dalenius.errors import EngineError
from tests.contract.subject import people
from tests.contract.subjects import BUILT_IN
from tests.mechanisms.bucketize.subjects import SUBJECTS as BUCKETS

SOAK = """
import gc, resource, shutil, sys
import dalenius
from tests.contract.subject import people
from tests.contract.subjects import BUILT_IN

def resident():
    gc.collect()
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize() / 2**20

table = people(600)
for i in range(50):
    subject = BUILT_IN[i % len(BUILT_IN)]
    release = dalenius.publish(subject.policy(table, sys.argv[1]), seed=i)
    shutil.rmtree(release.path)
    if i + 1 in (20, 50):
        print(resident(), flush=True)
"""
LARGE_RUN = """
import sys
import dalenius
from tests.contract.subject import people
from tests.mechanisms.bucketize.subjects import SUBJECTS
policy = SUBJECTS[0].policy(people(60_000), sys.argv[1])
print("ready", flush=True)
dalenius.publish(policy, again=True)
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads resident memory from /proc")
def test_fifty_publishes_in_a_row_leave_memory_flat(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SOAK, str(tmp_path / "r")],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        check=True,
    )
    after_20, after_50 = map(float, done.stdout.split())
    assert after_50 < after_20 + 30, "MiB"


@pytest.mark.slow
def test_a_run_that_is_killed_at_any_moment_leaves_no_partial_release(tmp_path: Path) -> None:
    target = tmp_path / "r"
    moments = np.random.default_rng()
    latest = 60.0  # seconds; narrowed to the length of a run by every run that ends before its moment
    n_cut_short = 0
    while n_cut_short < 6:
        shutil.rmtree(target, ignore_errors=True)
        process = _start(target)
        begun = time.monotonic()
        try:
            process.wait(timeout=moments.uniform(0, latest))
        except subprocess.TimeoutExpired:
            process.kill()
        ended_by = process.wait()
        took = time.monotonic() - begun
        if target.exists():  # it was faster than the signal: then it must be whole
            latest = min(latest, took)
            assert dalenius.verify(target, strict=True).ok
        else:
            assert ended_by == -signal.SIGKILL, "a run that was left alone publishes"
            n_cut_short += 1
    assert dalenius.publish(BUCKETS[0].policy(people(), target)).verify(strict=True).ok
    assert [path.name for path in tmp_path.iterdir()] == ["r"], "what killed runs left is gone"


def _start(target: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", LARGE_RUN, str(target)], stdout=subprocess.PIPE, env=ENVIRONMENT
    )
    assert process.stdout is not None
    with process.stdout:
        process.stdout.readline()
    return process


@pytest.mark.parametrize("index", range(0, len(BUILT_IN), 3))
def test_a_full_disk_is_a_clear_error_and_leaves_nothing(index: int, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    options = ["-t", "tmpfs", "-o", "size=48k", "tmpfs", str(disk)]
    if (
        not mount
        or not umount
        or subprocess.run([mount, *options], capture_output=True, check=False).returncode
    ):
        pytest.skip("a small disk can only be made by root where mounting is allowed")
    try:
        with pytest.raises(EngineError, match="the disk is full; nothing was published"):
            dalenius.publish(BUILT_IN[index].policy(people(60_000), disk / "r"))
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run([umount, str(disk)], check=True)
