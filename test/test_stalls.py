"""The control process of real-time tests measures the stalls of this machine."""

import os
import signal
import subprocess
import sys
import time

from stalls import StallRecorder, Starvation

SPIN = """
import os
os.sched_setaffinity(0, {%d})
print(flush=True)
while True:
    pass
"""


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


def test_a_process_that_shares_its_core_with_three_others_is_starved():
    def busy():
        return subprocess.Popen([sys.executable, '-c', SPIN % min(os.sched_getaffinity(0))],
                                stdout=subprocess.PIPE)

    processes = [busy() for _ in range(4)]
    try:
        for process in processes:
            process.stdout.readline()  # it has begun
        shared = Starvation(processes[0].pid)
        time.sleep(1.0)
        assert shared and not Starvation(os.getpid())
    finally:
        for process in processes:
            process.kill()
            process.communicate()
