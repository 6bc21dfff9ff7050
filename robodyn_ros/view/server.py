"""The server of a page in the browser, on the loopback interface alone."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import Any

from robodyn_ros.errors import OutputError, ValueRangeError
from robodyn_ros.packages import package

HOST = '127.0.0.1'  # nobody else on the network can see the robot, or move it
PORT, PORTS = 8080, (1024, 65535)


@contextmanager
def opened(port: int, label: str) -> Iterator[tuple[Any, str]]:
    """Provide a server of viser and its address; the server stops when the block ends.

    Parameters
    ----------
    port : int
        Port on the loopback interface.
    label : str
        Title of the page.

    Raises
    ------
    ValueRangeError, OutputError
        The port is out of range, or in use.
    """
    if not PORTS[0] <= port <= PORTS[1]:
        raise ValueRangeError('port', port, f'{PORTS[0]} to {PORTS[1]}')
    with socket.socket() as probe:
        if probe.connect_ex((HOST, port)) == 0:
            raise OutputError('it is in use', path=f'port {port}', valid='another --port')
    viser = package('viser')
    with redirect_stdout(StringIO()):  # its banner; the caller says the same in one line
        server = viser.ViserServer(host=HOST, port=port, label=label, verbose=False)
    try:
        yield server, f'http://{HOST}:{server.get_port()}'
    finally:
        with redirect_stdout(StringIO()):
            server.stop()
