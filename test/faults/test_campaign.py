"""A short form of the campaign of faults; `make faults` runs the long one."""

import pytest
from controller_faults import STRUCTURES, run


@pytest.mark.parametrize('structure', STRUCTURES)
def test_no_sequence_of_faults_breaks_the_controller(structure):
    torques = sum(run(structure, seed, 150)[0] for seed in range(3))
    assert torques > 1500


@pytest.mark.nodes
@pytest.mark.slow
def test_no_sequence_of_faults_breaks_the_nodes(tmp_path):
    pytest.importorskip('rclpy', reason='ROS 2 is not set up')
    from node_faults import Campaign

    campaign = Campaign(7, tmp_path)
    try:
        for _ in range(8):
            campaign.step()
        campaign.recover()
        campaign.check_use()
        assert campaign.torques > 100 and campaign.states > 0
    finally:
        campaign.close()
