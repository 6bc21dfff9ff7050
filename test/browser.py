"""Headless Chromium, driven through its debugging protocol."""

import base64
import itertools
import json
import re
import shutil
import subprocess
import time
import urllib.request

PROGRAM = next((path for name in ('chromium', 'chromium-browser', 'google-chrome')
                if (path := shutil.which(name))), None)


class Browser:
    """A page of a headless browser; WebGL is drawn in software.

    Use it in a ``with`` statement; `websockets` must be installed.
    """

    def __init__(self, address, folder, size=(1400, 900)):
        from websockets.sync.client import connect

        self._log = open(folder / 'browser.log', 'w+')  # noqa: SIM115
        self._process = subprocess.Popen(
            [PROGRAM, '--headless', '--no-sandbox', '--use-gl=angle', '--use-angle=swiftshader',
             '--enable-unsafe-swiftshader', '--remote-debugging-port=0',
             f'--user-data-dir={folder / "profile"}', f'--window-size={size[0]},{size[1]}',
             'about:blank'], stdout=self._log, stderr=subprocess.STDOUT)
        port = self._port(folder)
        pages = json.load(urllib.request.urlopen(f'http://127.0.0.1:{port}/json', timeout=30))
        page = next(one for one in pages if one['type'] == 'page')
        self._socket = connect(page['webSocketDebuggerUrl'], max_size=None, open_timeout=30)
        self._number = itertools.count(1)
        self.call('Page.enable')
        self.call('Page.navigate', url=address)

    def _port(self, folder):
        for _ in range(600):
            found = re.search(r'ws://127.0.0.1:(\d+)/', (folder / 'browser.log').read_text())
            if found:
                return int(found[1])
            time.sleep(0.1)
        raise AssertionError((folder / 'browser.log').read_text())

    def call(self, method, **parameters):
        """Call a method of the protocol; return its result."""
        number = next(self._number)
        self._socket.send(json.dumps({'id': number, 'method': method, 'params': parameters}))
        while True:
            answer = json.loads(self._socket.recv(timeout=60))
            if answer.get('id') == number:
                return answer['result']

    def text(self):
        """The text of the page."""
        found = self.call('Runtime.evaluate', expression='document.body.innerText')
        return found['result'].get('value') or ''

    def wait_for(self, words, seconds=90.0):
        """Wait until a text is on the page; return all of its text."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            text = self.text()
            if words in text:
                return text
            time.sleep(0.3)
        raise AssertionError(f'{words!r} is not in {text[:2000]!r}')

    def picture(self, path):
        """Write a PNG of the page."""
        path.write_bytes(base64.b64decode(self.call('Page.captureScreenshot')['data']))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()
        self._process.terminate()
        self._process.wait(30)
        self._log.close()
