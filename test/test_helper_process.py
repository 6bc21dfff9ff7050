"""The helper process of a node, which starts others: its limits, and its replacement."""

import subprocess
import sys

# pytest has threads, and the helper process forks: it is used in an interpreter of its own
SCRIPT = '''
import os, signal, time
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
assert "no task 'sine'; valid: sqrt, sleep" in fails('sine', 0.0)
other = HelperProcess({'sqrt': __import__('math').sqrt})  # of another node in this process
for number in (signal.SIGKILL, signal.SIGSTOP):  # it is killed; it is suspended
    for each in (helper, other):
        before = each.pid
        os.kill(before, number)
        assert each.call('sqrt', 9.0) == 3.0
        assert each.pid != before
other.close()
assert 'longer than' in fails('sleep', 30.0, seconds=0.2)

# a child that is stopped ends with the helper process
_, child = helper.start('sleep')
os.kill(child, signal.SIGSTOP)
helper.close()

def ended():
    try:
        with open(f'/proc/{child}/stat') as file:
            return file.read().rsplit(')', 1)[1].split()[0] == 'Z'
    except FileNotFoundError:
        return True

wait_for(ended)
'''


def test_limits_hold_and_a_helper_that_dies_or_stands_still_is_started_again():
    done = subprocess.run([sys.executable, '-c', SCRIPT], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
