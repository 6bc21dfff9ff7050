"""The process beside a node that starts others: its limits, and what follows when it is lost."""

import subprocess
import sys

# pytest has threads, and the helper process forks: it is used in an interpreter of its own
SCRIPT = '''
import os, signal, sys, threading, time
from robodyn_ros.nodes import helper_process
from robodyn_ros.nodes.helper_process import HelperError, HelperProcess

def fails(*arguments, **options):
    try:
        helper.call(*arguments, **options)
    except HelperError as error:
        return str(error)

def wait_for(condition):
    end = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)

helper_process.STARTS_WITHIN = 0.5
helper = HelperProcess({'sqrt': __import__('math').sqrt, 'sleep': time.sleep,
                        'bytes': __import__('os').urandom, 'kill': __import__('os').abort})
assert helper.call('sqrt', 16.0) == 4.0
assert 'longer than 0.2 s' in fails('sleep', 30.0, seconds=0.2)
assert 'more memory' in fails('bytes', 3 * 2**30)
assert 'math domain' in fails('sqrt', -1.0)
assert helper.call('sqrt', 25.0) == 5.0
for number in (signal.SIGKILL, signal.SIGSTOP):  # it is gone; it stands still
    before = helper.pid
    os.kill(before, number)
    assert helper.call('sqrt', 9.0) == 3.0
    assert helper.pid != before
assert 'longer than' in fails('sleep', 30.0, seconds=0.2)

# a child that is stopped ends with the helper process
threading.Thread(target=fails, args=('sleep', 30.0), daemon=True).start()
list_of_children = lambda: open(f'/proc/{helper.pid}/task/{helper.pid}/children').read().split()
wait_for(list_of_children)
child = int(list_of_children()[0])
os.kill(child, signal.SIGSTOP)
time.sleep(0.2)
helper.close()
wait_for(lambda: not os.path.exists(f'/proc/{child}'))
'''


def test_limits_hold_and_a_helper_that_dies_or_stands_still_is_started_again():
    done = subprocess.run([sys.executable, '-c', SCRIPT], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
