"""The limit of time, and work side by side."""

import threading
import time

import pytest

from crossfade.sampling.clock import OutOfTime, look_at_clock, side_by_side, until


def test_time_is_up_inside_the_context_and_not_outside():
    with until(time.perf_counter() - 1), pytest.raises(OutOfTime):
        look_at_clock()
    look_at_clock()
    with until(time.perf_counter() - 1), until(time.perf_counter() + 100), pytest.raises(OutOfTime):
        look_at_clock()  # the nearer end counts


def test_results_come_in_order_and_the_work_is_done_at_once():
    together = threading.Barrier(3, timeout=20)  # passed only if all three are there at the same time

    def task(i):
        together.wait()
        return i

    assert side_by_side([lambda i=i: task(i) for i in range(3)]) == [0, 1, 2]


def test_threads_know_the_end_and_stop_when_one_fails():
    with until(time.perf_counter() - 1), pytest.raises(OutOfTime):
        side_by_side([look_at_clock, lambda: None])
    stopped = threading.Event()

    def goes_on():
        try:
            for _ in range(2000):
                look_at_clock()
                time.sleep(0.01)
        except OutOfTime:
            stopped.set()
            raise

    def fails():
        raise ValueError("one of them")

    with pytest.raises(ValueError, match="one of them"):
        side_by_side([fails, goes_on])
    assert stopped.is_set()
    look_at_clock()
