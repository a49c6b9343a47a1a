from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch

from sortie.models.threads import _pause, passing_pool


def workers() -> int:
    """Threads of this process, as the kernel counts them."""
    return len(list(Path("/proc/self/task").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts threads through /proc")
def test_a_thread_that_has_finished_computing_keeps_no_workers() -> None:
    """Two pools at once halve the speed of decoding."""
    if torch.get_num_threads() < 2 or _pause() is None:
        pytest.skip("torch computes on one thread here, or with another OpenMP")
    found: list[int] = []

    def compute() -> None:
        found.append(workers())
        with passing_pool():
            torch.randn(1000, 1000).exp()
            found.append(workers())
        found.append(workers())
        torch.randn(1000, 1000).exp()  # and it can compute again
        found.append(workers())

    thread = threading.Thread(target=compute)
    thread.start()
    thread.join()
    before, inside, after, again = found
    assert inside > before
    assert after == before
    assert again == inside
