"""The control process of real-time tests measures the stalls of this machine."""

import os
import signal
import time

from stalls import StallRecorder


def test_a_stopped_process_counts_as_a_stall():
    recorder = StallRecorder()
    try:
        time.sleep(0.5)  # by now it has started, and sleeps most of the time
        began = time.monotonic()
        os.kill(recorder.pid, signal.SIGSTOP)
        time.sleep(0.3)
        os.kill(recorder.pid, signal.SIGCONT)
        end = time.monotonic() + 10.0
        while recorder.worst(began) < 0.28 and time.monotonic() < end:
            time.sleep(0.02)
        assert 0.28 <= recorder.worst(began) <= recorder.total(began)
        assert recorder.worst(time.monotonic() + 1.0) == 0.0
    finally:
        recorder.close()
