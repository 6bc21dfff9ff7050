"""The table of topics with their quality of service, compared with what the nodes create."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

rclpy = pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from domains import new_domain, release_domain  # noqa: E402
from rclpy.lifecycle import TransitionCallbackReturn  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy  # noqa: E402
from robots import planar_2r  # noqa: E402

from robodyn_ros.nodes.dynamics import DynamicsPublisher  # noqa: E402
from robodyn_ros.nodes.feedforward import Feedforward  # noqa: E402
from robodyn_ros.nodes.identification import Identification  # noqa: E402
from robodyn_ros.nodes.observer import Observer  # noqa: E402
from robodyn_ros.nodes.simulator import Simulator  # noqa: E402

pytestmark = pytest.mark.nodes
PAGE = Path(__file__).parent.parent / 'docs/reference/topics.md'
NODES = {'dynamics': DynamicsPublisher, 'feedforward': Feedforward,
         'identification': Identification, 'observer': Observer, 'simulator': Simulator}
OF_RCLPY = {'/parameter_events', '/rosout'}
RELIABILITY = {ReliabilityPolicy.RELIABLE: 'reliable',
               ReliabilityPolicy.BEST_EFFORT: 'best effort'}
DURABILITY = {DurabilityPolicy.VOLATILE: 'volatile',
              DurabilityPolicy.TRANSIENT_LOCAL: 'transient local'}


@pytest.fixture
def context():
    domain, context = new_domain(), rclpy.Context()
    rclpy.init(context=context, domain_id=int(domain))
    yield context
    rclpy.shutdown(context=context)
    release_domain(domain)


def interfaces(name, root, context):
    """Return {(topic, direction): (reliability, durability, depth)} of a configured node."""
    values = {'autostart': False, 'robot_description': planar_2r()}
    values |= {'feedforward': {'watchdog': False, 'on_contact': 'stop'}, 'identification': {
        'root': str(root), 'use_motor_states': True}}.get(name, {})
    node = NODES[name](context=context, parameter_overrides=[
        Parameter(key, value=value) for key, value in values.items()])
    try:
        assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
        found = {}
        for direction, entities in (('in', node.subscriptions), ('out', node.publishers)):
            for entity in entities:
                topic, qos = entity.topic_name, entity.qos_profile
                if topic not in OF_RCLPY and not topic.endswith('transition_event'):
                    found[topic, direction] = (RELIABILITY[qos.reliability],
                                               DURABILITY[qos.durability], qos.depth)
        return found
    finally:
        node.before_shutdown()
        node.end()
        node.destroy_node()


def stated():
    """Return [(nodes, topic, direction, (reliability, durability, depth))] of the page."""
    table = PAGE.read_text(encoding='utf-8').partition('## Quality of service')[2]
    rows = [[cell.strip() for cell in line.strip('|').split('|')]
            for line in table.splitlines() if line.startswith('| ')][1:]
    return [(nodes.split(', '), topic, direction, (reliability, durability, int(depth)))
            for nodes, topics, direction, reliability, durability, depth in rows
            for topic in re.findall('`([^`]+)`', topics)]


def test_the_table_states_what_the_nodes_create(tmp_path, context):
    rows, used = stated(), set()
    for name in NODES:
        for (topic, direction), quality in interfaces(name, tmp_path, context).items():
            fitting = [k for k, (nodes, pattern, way, _) in enumerate(rows)
                       if name in nodes and way == direction
                       and fnmatch(topic, pattern.replace('~', f'/{name}') if
                                   pattern[0] in '~/' else f'/{pattern}')]
            assert len(fitting) == 1, (name, topic, direction, quality)
            assert rows[fitting[0]][3] == quality, (name, topic)
            used.add(fitting[0])
    assert used == set(range(len(rows))), [row for k, row in enumerate(rows) if k not in used]
