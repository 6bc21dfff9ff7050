"""The node `dynamics`: descriptions for it, what it counts, and its answers to joint states."""

from robots import joint, link, robot
from ros_world import message_at

from robodyn_interfaces.srv import SetModel

BAD_DESCRIPTIONS = {
    'empty': '',
    'no XML': 'robot',
    'not well-formed': '<robot name="r"><link name="a"></robot>',
    'no moving joint': robot(link('a', 1.0)),
    'no inertial': robot(link('a'), link('b'), joint('j', 'revolute', 'a', 'b')),
    'nan': robot(link('a', 1.0), link('b', float('nan')), joint('j', 'revolute', 'a', 'b')),
    'negative mass': robot(link('a', 1.0), link('b', -1.0), joint('j', 'revolute', 'a', 'b')),
    'entities': '<!DOCTYPE r [<!ENTITY a "aaaa">]><robot name="&a;"/>',
}


def use(world, text):
    """Give the node a robot; return the model version."""
    response = world.call(SetModel, 'dynamics/set_model', SetModel.Request(robot_description=text))
    assert response.success, response.message
    return response.model_version


class Counts:
    """What the node has counted since the test began."""

    def __init__(self, world):
        world.diagnostics.pop('dynamics', None)  # it may lack what the test before has counted
        world.wait(lambda: 'dynamics' in world.diagnostics, 'diagnostics')
        self.world, self.before = world, dict(world.diagnostics['dynamics'])

    def __call__(self, kind):
        return self.world.count('dynamics', kind) - int(self.before.get(kind, 0))


def answer(world, messages, names, q, qd, **options):
    """Send a state until the answer to it comes (best effort may lose the first)."""
    sent, found = [], []

    def answered():
        found[:] = [message for message in (message_at(messages, ns) for ns in sent)
                    if message is not None]
        return found

    for _ in range(100):
        sent.append(world.state(names, q, qd, **options))
        world.spin(0.2, until=answered)
        if found:
            return found[-1]
    raise AssertionError('no answer')
