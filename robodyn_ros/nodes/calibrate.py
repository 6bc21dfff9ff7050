"""`robodyn calibrate`: calls the identification action and shows its progress and result."""

from __future__ import annotations

import signal
from typing import Any

import rclpy
from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from robodyn_interfaces.action import IdentifyDynamics

COLOURS = {'good': 'green', 'doubtful': 'yellow', 'bad': 'red'}
PATIENCE = 10.0  # s, timeout for the action server


def calibrate(goal: IdentifyDynamics.Goal, action: str, console: Console | None = None) -> int:
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

    Returns
    -------
    int
        0 for a verdict that is not bad, 1 for a bad verdict or a failure, 2 without a server, 130
        after two interrupts.
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
        with Progress(TextColumn('{task.description:32}'), BarColumn(), TimeElapsedColumn(),
                      TextColumn('{task.fields[said]}'), console=console) as bars:
            try:
                result, status = _follow(executor, client, goal, _Bars(bars))
            except KeyboardInterrupt:
                return 130
        _show(console, result, status)
        return 0 if result.success and result.verdict != 'bad' else 1
    finally:
        rclpy.try_shutdown()


class _Bars:
    """Shows a progress bar for each phase."""

    def __init__(self, bars: Progress):
        self._bars, self._phase, self._task = bars, '', None

    def take(self, message: Any) -> None:
        feedback = message.feedback
        if feedback.phase != self._phase:
            self.end()
            self._phase = feedback.phase
            self._task = self._bars.add_task(feedback.phase, total=1.0, said='')
        said = [f'{feedback.samples} samples'] if feedback.samples else []
        if feedback.condition:
            said.append(f'condition {feedback.condition:.3g}')
        known = [x for x in feedback.residual if x == x]
        if known:
            said.append('unexplained ' + ' '.join(f'{x:.0%}' for x in known))
        self._bars.update(self._task, completed=feedback.progress, said=', '.join(said))

    def end(self) -> None:
        if self._task is not None:
            self._bars.update(self._task, completed=1.0)


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


def _follow(executor: Any, client: Any, goal: Any, bars: _Bars) -> tuple[Any, int]:
    """Send a goal and wait for its result: the first Ctrl-C cancels it, the second gives up."""
    with _Interrupts() as interrupts:
        return _wait(executor, client.send_goal_async(goal, feedback_callback=bars.take), bars,
                     interrupts)


def _wait(executor: Any, sent: Any, bars: _Bars, interrupts: _Interrupts) -> tuple[Any, int]:
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
    bars.end()
    return ended.result().result, ended.result().status


def _show(console: Console, result: Any, status: int) -> None:
    if not result.success:
        word = 'cancelled' if status == GoalStatus.STATUS_CANCELED else 'failed'
        console.print(f'[red]{word}')
    else:
        console.print(f'[{COLOURS.get(result.verdict, "white")} bold]{result.verdict}')
        table = Table('joint', *('fit', 'validation', 'without noise', 'description'))
        for row in zip(result.joint, result.identification_error, result.validation_error,
                       result.validation_error_filtered, result.validation_error_nominal,
                       strict=True):
            table.add_row(row[0], *(f'{value:.2%}' for value in row[1:]))
        console.print(table)
        console.print(f'{sum(result.significant)} of {len(result.base_parameter)} base parameters '
                      f'significant, condition {result.condition:.3g}')
    for reason in result.reasons:
        console.print(f'- {reason}', markup=False)
    if result.applied:
        versions = ', '.join(map(str, result.model_version))
        console.print(f'[green]applied[/] to the running nodes, model versions {versions}')
    if result.folder:
        console.print(f'{result.folder}: {", ".join(result.files)}', markup=False, soft_wrap=True)
