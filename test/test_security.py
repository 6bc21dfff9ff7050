"""The security policy as a file; test/faults/test_campaign.py compares it with running nodes."""

import pytest

pytest.importorskip('rclpy', reason='ROS 2 is not set up')
from security_policy import FILE, allowed, load  # noqa: E402

from robodyn_ros.nodes.declarations import NODES  # noqa: E402


def test_every_node_has_an_enclave_of_its_name():
    paths = [enclave.get('path') for enclave in load().find('enclaves')]
    assert paths == list(dict.fromkeys(paths))  # no comments either: sros2 cannot read them here
    assert set(paths) == {f'/robodyn_ros/{name}' for name in (*NODES, 'calibrate')}


def test_the_gazebo_bridge_has_the_permissions_of_the_simulator():
    def renamed(node):
        return {rule: {name.replace(f'/{node}/', '/NODE/') for name in names}
                for rule, names in allowed(node).items()}
    assert renamed('gazebo_bridge') == renamed('simulator')


def test_the_command_calls_the_action_that_the_node_serves():
    called = allowed('calibrate')['call']
    assert called and called <= allowed('identification')['execute']


def test_the_policy_has_the_form_that_sros2_requires():
    """As policy.xsd of sros2 requires it, which is not available as a package."""
    policy = load()
    assert policy.get('version') == '0.2.0' and 'ALLOW' in FILE.read_text()
    kinds = {'topics': ('topic', {'publish', 'subscribe'}),
             'services': ('service', {'reply', 'request'}),
             'actions': ('action', {'call', 'execute'})}
    for profile in policy.iterfind('enclaves/enclave/profiles/profile'):
        assert {'ns', 'node'} == set(profile.attrib) and len(profile)
        for group in profile:
            entry, rules = kinds[group.tag]
            assert rules >= set(group.attrib) - {'{http://www.w3.org/XML/1998/namespace}base'}
            assert len(group) and all(one.tag == entry and one.text for one in group)
