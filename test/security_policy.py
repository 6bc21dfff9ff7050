"""The SROS2 policy in config/security, with its names as they are in the graph."""

from fnmatch import fnmatchcase
from pathlib import Path

from lxml import etree
from rclpy.action import (
    get_action_client_names_and_types_by_node,
    get_action_server_names_and_types_by_node,
)

FILE = Path(__file__).parents[1] / 'config/security/policy.xml'
# what a node does only with certain parameters, or in a launch file that remaps its topics
AT_TIMES = {'subscribe': {'/clock', '/parameter_events', '/motor_states', '/feedforward/torque',
                          '/observer/contact', '/odom', '/imu/data',
                          '/tf', '/tf_static'},
            'publish': {'/feedforward/reference', '/dynamics/constraint_forces/*',
                        '/dynamics/energy'}}


def load():
    """The policy, with what it includes."""
    tree = etree.parse(FILE)
    tree.xinclude()
    return tree.getroot()


def allowed(node):
    """What a node may do: a mapping of rule (publish, reply, ...) -> names with wildcards."""
    profile, = load().iterfind(f'enclaves/enclave/profiles/profile[@node="{node}"]')
    rules = {}
    for group in profile.iterchildren('topics', 'services', 'actions'):
        names = {_expanded(entry.text, profile.get('ns'), node) for entry in group}
        for rule, qualifier in group.attrib.items():
            assert qualifier == 'ALLOW'
            rules.setdefault(rule, set()).update(names)
    return rules


def enclave_of(node):
    """Path of the enclave that holds a node."""
    entry, = load().xpath(f'enclaves/enclave[profiles/profile/@node="{node}"]')
    return entry.get('path')


def _expanded(name, namespace, node):
    start = namespace.rstrip('/') + '/'
    if name.startswith('~'):
        return f'{start}{node}{name[1:]}'
    return name if name.startswith('/') else start + name


def done(node, name):
    """What a running node does, as another node sees it in the graph."""
    offers = {'publish': node.get_publisher_names_and_types_by_node,
              'subscribe': node.get_subscriber_names_and_types_by_node,
              'reply': node.get_service_names_and_types_by_node,
              'request': node.get_client_names_and_types_by_node}
    found = {rule: {entry for entry, _ in names(name, '/') if '/_action/' not in entry}
             for rule, names in offers.items()}
    for rule, names in (('execute', get_action_server_names_and_types_by_node),
                        ('call', get_action_client_names_and_types_by_node)):
        found[rule] = {entry for entry, _ in names(node, name, '/')}
    return {rule: names for rule, names in found.items() if names}


def difference(rules, doings):
    """What is done and not allowed, and what is allowed and not done: (rule, name) each."""
    forbidden = {(rule, name) for rule, names in doings.items() for name in names
                 if not any(fnmatchcase(name, entry) for entry in rules.get(rule, ()))}
    unused = {(rule, entry) for rule, entries in rules.items()
              for entry in entries - AT_TIMES.get(rule, set())
              if not any(fnmatchcase(name, entry) for name in doings.get(rule, ()))}
    return forbidden, unused
