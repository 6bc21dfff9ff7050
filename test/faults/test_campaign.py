"""A short form of the campaign of faults; `make faults` runs the long one."""

import pytest
from controller_faults import STRUCTURES, run


@pytest.mark.parametrize('structure', STRUCTURES)
def test_no_sequence_of_faults_breaks_the_controller(structure):
    torques = sum(run(structure, seed, 150)[0] for seed in range(3))
    assert torques > 1500


@pytest.fixture(scope='module')
def campaign(tmp_path_factory):
    pytest.importorskip('rclpy', reason='ROS 2 is not set up')
    from node_faults import Campaign

    campaign = Campaign(7, tmp_path_factory.mktemp('runs'))
    yield campaign
    campaign.close()


@pytest.mark.nodes
@pytest.mark.slow
@pytest.mark.parametrize('name', ['dynamics', 'feedforward', 'feedforward_watchdog',
                                  'identification', 'simulator'])
def test_the_security_policy_allows_what_a_node_does_and_no_more(campaign, name):
    from security_policy import allowed, difference, done, enclave_of

    node = campaign.world.node
    # the campaign has the simulated states on a topic of their own
    used = {rule: {entry.replace('/simulated_states', '/joint_states') for entry in names}
            for rule, names in done(node, name).items()}
    assert difference(allowed(name), used) == (set(), set())
    enclaves = {entry[0]: entry[2] for entry in node.get_node_names_and_namespaces_with_enclaves()}
    assert enclaves[name] == enclave_of(name)


@pytest.mark.nodes
@pytest.mark.slow
def test_no_sequence_of_faults_breaks_the_nodes(campaign):
    for _ in range(10):
        campaign.step()
    campaign.recover()
    campaign.check_use()
    assert campaign.torques > 100 and campaign.states > 0
