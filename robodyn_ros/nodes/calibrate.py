"""`robodyn calibrate`: calls the identification action and shows its progress and result."""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import rclpy
from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from robodyn_interfaces.action import IdentifyDynamics

COLOURS = {'good': 'green', 'doubtful': 'yellow', 'bad': 'red'}
PATIENCE = 10.0  # s, timeout for the action server
PHASE = 36  # columns of the name of a phase
BAR = 24  # columns of the bar


def calibrate(goal: IdentifyDynamics.Goal, action: str, console: Console | None = None,
              port: int | None = None) -> int:
    """Send a goal, show its progress and its result, and return the exit code.

    The first interrupt (Ctrl-C) cancels the goal: the robot brakes, and recordings are kept. The
    second one ends the command immediately.

    Parameters
    ----------
    goal : IdentifyDynamics.Goal
        The goal.
    action : str
        Name of the action.
    console : Console, optional
        The console for all output.
    port : int, optional
        Port on the loopback interface for a page that shows the experiment. The page stays until
        Ctrl-C, also when the experiment is over.

    Returns
    -------
    int
        0 for a verdict that is not bad, 1 for a bad verdict or a failure, 2 without a server, 130
        after two interrupts.

    Raises
    ------
    RobodynError
        The page cannot be shown.
    """
    console = console or Console()
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    try:
        node = rclpy.create_node('calibrate')
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        client = ActionClient(node, IdentifyDynamics, action)
        if not client.wait_for_server(PATIENCE):
            console.print(f'[red]there is no action server {action}[/]; start one, '
                          'for example with: ros2 launch robodyn_ros identification.launch.py '
                          'urdf:=arm.urdf')
            return 2
        with ExitStack() as stack:
            view = None
            if port is not None:
                view = stack.enter_context(_view(node, executor, action, port))
                console.print(f'The experiment is shown at {view.address}', soft_wrap=True)
            try:
                with _Display(console, view) as display:
                    result, status = _follow(executor, client, goal, display)
                _show(console, result, status)
                if view is not None and status != GoalStatus.STATUS_CANCELED:
                    view.end(result, result.verdict or _ending(status))
                    console.print('The page stays until Ctrl-C.')
                    _stay(executor)
            except KeyboardInterrupt:
                return 130
        return 0 if result.success and result.verdict != 'bad' else 1
    finally:
        rclpy.try_shutdown()


def _view(node: Any, executor: Any, action: str, port: int) -> Any:
    from robodyn_ros.nodes.experiment_view import ExperimentView

    return ExperimentView(node, action, port, partial(_spin, executor))


def _spin(executor: Any, seconds: float) -> None:
    """Serve the node once; Ctrl-C raises KeyboardInterrupt afterwards."""
    with _Interrupts() as interrupts:
        executor.spin_once(timeout_sec=seconds)
    if interrupts.count:
        raise KeyboardInterrupt


def _stay(executor: Any) -> None:
    """Let the page follow the robot until Ctrl-C."""
    with suppress(KeyboardInterrupt):
        while True:
            _spin(executor, 0.1)


class _Display:
    """Prints a line for each phase when it ends, and shows the present phase below these lines."""

    def __init__(self, console: Console, view: Any = None):
        self._console, self._view = console, view
        self._phase, self._began, self._lines = '', 0.0, Group()
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> _Display:
        self._live.__enter__()
        return self

    def __exit__(self, *_: Any) -> None:
        self.end()
        self._live.__exit__(None, None, None)

    def take(self, message: Any) -> None:
        feedback = message.feedback
        if self._view is not None:
            self._view.take(feedback)
        if feedback.phase != self._phase:
            self.end()
            self._phase, self._began = feedback.phase, time.monotonic()
        self._lines = Group(*(Padding(Text(line), (0, 0, 0, 2)) for line in _lines(feedback)))
        row = Table.grid(padding=(0, 1))
        row.add_row(f'{self._phase:{PHASE}}', ProgressBar(
            total=1.0, completed=feedback.progress, width=BAR), self._elapsed())
        self._live.update(Group(row, self._lines), refresh=self._console.is_terminal)

    def end(self) -> None:
        """Print the phase that ends."""
        if self._phase:
            self._live.update('')
            self._console.print(f'{self._phase:{PHASE}} {self._elapsed()}')
            self._console.print(self._lines)
            self._phase, self._lines = '', Group()

    def _elapsed(self) -> str:
        return f'{time.monotonic() - self._began:6.1f} s'


def _lines(feedback: Any) -> list[str]:
    """Return what a recording has found so far."""
    facts = [f'{feedback.samples} samples'] if feedback.samples else []
    facts += [f'condition number {feedback.condition:.3g}'] if feedback.condition else []
    lines = [', '.join(facts)] if facts else []
    if len(feedback.tracking_error):
        k = max(range(len(feedback.joint)), key=lambda k: abs(feedback.tracking_error[k]))
        lines.append('farthest off its reference: '
                     f'{feedback.joint[k]} by {abs(feedback.tracking_error[k]):.4f} rad or m')
    known = [f'{name} {part:.0%}' for name, part in zip(feedback.joint, feedback.residual,
                                                        strict=True) if part == part]
    if known:
        lines.append(f'unexplained torque: {", ".join(known)}')
    return lines


class _Interrupts:
    """Counts Ctrl-C; an exception in the middle of rclpy's work would become another error."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> _Interrupts:
        self._before = signal.signal(signal.SIGINT, self._count)
        return self

    def __exit__(self, *_: Any) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _count(self, *_: Any) -> None:
        self.count += 1


def _follow(executor: Any, client: Any, goal: Any, display: _Display) -> tuple[Any, int]:
    """Send a goal and wait for its result: the first Ctrl-C cancels it, the second gives up."""
    with _Interrupts() as interrupts:
        sent = client.send_goal_async(goal, feedback_callback=display.take)
        return _wait(executor, sent, display, interrupts)


def _wait(executor: Any, sent: Any, display: _Display, interrupts: _Interrupts) -> tuple[Any, int]:
    while not sent.done():
        executor.spin_once(timeout_sec=0.1)
        if interrupts.count:
            raise KeyboardInterrupt
    handle = sent.result()
    if not handle.accepted:
        refused = IdentifyDynamics.Result(
            reasons=['the server is not active and refused the goal'])
        return refused, GoalStatus.STATUS_ABORTED
    ended = handle.get_result_async()
    cancelled = False
    while not ended.done():
        executor.spin_once(timeout_sec=0.1)
        if interrupts.count > 1:
            raise KeyboardInterrupt
        if interrupts.count and not cancelled:
            cancelled = True
            handle.cancel_goal_async()
    display.end()
    return ended.result().result, ended.result().status


def _ending(status: int) -> str:
    return 'cancelled' if status == GoalStatus.STATUS_CANCELED else 'failed'


def _reduced(result: Any) -> Table:
    """Return the estimate of the significant parameters alone."""
    table = Table('parameter', 'estimate', 'deviation', title='significant parameters alone')
    for name, value, deviation in zip(result.reduced_parameter, result.reduced_value,
                                      result.reduced_standard_deviation, strict=True):
        table.add_row(name, f'{value:.4g}', f'{deviation:.2g}')
    return table


def _show(console: Console, result: Any, status: int) -> None:
    if not result.success:
        console.print(f'[red]{_ending(status)}')
    else:
        console.print(f'[{COLOURS.get(result.verdict, "white")} bold]{result.verdict}')
        table = Table('joint', 'fit', 'validation', 'filtered', 'description')
        for row in zip(result.joint, result.identification_error, result.validation_error,
                       result.validation_error_filtered, result.validation_error_nominal,
                       strict=True):
            table.add_row(row[0], *(f'{value:.2%}' for value in row[1:]))
        console.print(table)
        console.print(f'{sum(result.significant)} of {len(result.base_parameter)} base parameters '
                      f'significant, condition number {result.condition:.3g}')
        if result.reduced_parameter:
            console.print(_reduced(result))
    for reason in result.reasons:
        console.print(f'- {reason}', markup=False)
    if result.applied:
        versions = ', '.join(map(str, result.model_version))
        console.print(f'[green]applied[/] to the running nodes, model versions {versions}')
    if result.folder:
        console.print(f'{result.folder}: {", ".join(result.files)}', markup=False, soft_wrap=True)
