"""An action client: goal as JSON in, feedback and result as lines of JSON out."""

import json
import math
import sys
import threading

import rclpy
from rclpy.action import ActionClient

from robodyn_interfaces.action import IdentifyDynamics


def plain(message):
    """A message as what JSON can hold."""
    fields = {}
    for name in message.get_fields_and_field_types():
        value = getattr(message, name)
        if not isinstance(value, (str, bool, int, float)):
            value = [x if isinstance(x, (str, bool)) else float(x) for x in value]
            value = [None if isinstance(x, float) and math.isnan(x) else x for x in value]
        fields[name] = value
    return fields


def say(kind, message, **extra):
    print(json.dumps({'kind': kind, **plain(message), **extra}), flush=True)


def main():
    rclpy.init()
    node = rclpy.create_node('client')
    client = ActionClient(node, IdentifyDynamics, 'identification/identify')
    if not client.wait_for_server(60.0):
        raise SystemExit('no server')
    goal = IdentifyDynamics.Goal(**json.loads(sys.argv[1]))
    future = client.send_goal_async(
        goal, feedback_callback=lambda message: say('feedback', message.feedback))
    rclpy.spin_until_future_complete(node, future)
    handle = future.result()
    if not handle.accepted:
        raise SystemExit('refused')

    def listen():
        for line in sys.stdin:
            if line.strip() == 'cancel':
                handle.cancel_goal_async()

    threading.Thread(target=listen, daemon=True).start()
    result = handle.get_result_async()
    rclpy.spin_until_future_complete(node, result)
    answer = result.result()
    say('result', answer.result, status=answer.status)


main()
