"""An identification server beside a closed loop, and a client of it in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).with_name('identification_client.py')


class Client:
    """Sends one goal from another process; its feedback and result are lines of JSON."""

    def __init__(self, **goal):
        self._process = subprocess.Popen(
            [sys.executable, str(CLIENT), json.dumps(goal)], stdout=subprocess.PIPE,
            stdin=subprocess.PIPE, text=True)
        self.feedback = []

    def read(self, until=None):
        """Read lines until the result, or feedback of a phase; return it."""
        for line in self._process.stdout:
            entry = json.loads(line)
            if entry['kind'] == 'result':
                assert until is None, f'{until} did not come: {entry["reasons"]}'
                return entry
            self.feedback.append(entry)
            if until is not None and entry['phase'].startswith(until):
                return entry
        raise AssertionError(f'the client ended with {self._process.wait(5)}; its last words: '
                             f'{self.feedback[-1:]}')

    def until(self, phase, progress):
        """Read until the phase has come so far."""
        while self.read(phase)['progress'] < progress:
            pass

    def cancel(self):
        self._process.stdin.write('cancel\n')
        self._process.stdin.flush()

    def close(self):
        self._process.kill()
        self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()
