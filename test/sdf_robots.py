"""SDF texts of robots for the tests, and one of them built in MuJoCo from hand-composed poses."""

import mujoco
import numpy as np

from robodyn_ros.spatial import rotation_from_rpy

BODY = ('<inertial><pose>{} 0.3 -0.2 0.1</pose><mass>{}</mass><inertia><ixx>0.02</ixx>'
        '<iyy>0.03</iyy><izz>0.04</izz><ixy>0.001</ixy><iyz>-0.002</iyz></inertia></inertial>')

# links beside their joints and turned, frames, degrees, quaternions, axes expressed in other
# frames, a joint whose child is nearer to the base, a screw, a universal joint and a gearbox
ARM = f"""<sdf version="1.11"><model name="arm"><pose>0 0 0.2 0.1 0 0</pose>
<frame name="mark" attached_to="upper"><pose degrees="true">0.3 0.1 0 90 0 30</pose></frame>
<link name="stand"/>
<joint name="ground" type="fixed"><parent>world</parent><child>stand</child></joint>
<link name="upper"><pose>0.1 0 0.3 0.2 0.3 0.4</pose>{BODY.format('0.1 0 0.02', 2)}</link>
<joint name="pan" type="revolute"><parent>stand</parent><child>upper</child>
  <pose relative_to="stand">0.05 0.02 0.1 0 0 0</pose>
  <axis><xyz expressed_in="__model__">0 0.6 0.8</xyz><limit><lower>-1</lower><upper>2</upper>
    <effort>30</effort><velocity>-1</velocity></limit>
    <dynamics><damping>0.5</damping><friction>0.7</friction></dynamics></axis></joint>
<link name="lower"><pose relative_to="mark" rotation_format="quat_xyzw">0.1 0 0
  0.5 -0.5 0.5 0.5</pose>{BODY.format('0 0.05 0.1', 1)}</link>
<joint name="tilt" type="revolute"><parent>lower</parent><child>mark</child>
  <axis><xyz expressed_in="mark">0 0 2</xyz></axis></joint>
<link name="nut"><pose relative_to="lower">0.2 0 0 0 0.5 0</pose>
  {BODY.format('0 0 0.1', .5)}</link>
<joint name="thread" type="screw"><parent>lower</parent><child>nut</child>
  <screw_thread_pitch>0.3</screw_thread_pitch><axis><xyz>1 0 0</xyz></axis></joint>
<link name="cross"><pose relative_to="nut">0 0.1 0.1 0 0 0</pose>{BODY.format('0 0 0', .4)}</link>
<joint name="cardan" type="universal"><parent>nut</parent><child>cross</child>
  <pose>0.01 0 0 0 0 0</pose><axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2></joint>
<link name="wheel"><pose relative_to="stand">0.4 0 0 0 0 0</pose>
  {BODY.format('0.1 0 0', .3)}</link>
<joint name="spin" type="continuous"><parent>stand</parent><child>wheel</child>
  <axis><xyz>0 0 1</xyz></axis></joint>
<link name="gear"><pose relative_to="stand">0 0.4 0 0 0 0</pose>{BODY.format('0 0.1 0', .6)}</link>
<joint name="turn" type="revolute"><parent>stand</parent><child>gear</child>
  <axis><xyz>0 0 -1</xyz></axis></joint>
<joint name="teeth" type="gearbox"><parent>wheel</parent><child>gear</child>
  <gearbox_ratio>3</gearbox_ratio><gearbox_reference_body>stand</gearbox_reference_body>
  <axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 1</xyz></axis2></joint>
</model></sdf>"""

# wheels on a body, one of an included model; the first joint turns about a line beside its link
ROVER = f"""<sdf version="1.6"><model name="rover">
<link name="trunk">{BODY.format('0 0 0', 5)}</link>
<link name="leg"><pose frame="trunk">0.3 0 0 0 0 1.2</pose>{BODY.format('0 0 -0.1', 1)}</link>
<joint name="hip" type="revolute"><parent>trunk</parent><child>leg</child>
  <pose>0 0.1 0 0 0 0</pose><axis><xyz>0 1 0</xyz>
  <use_parent_model_frame>1</use_parent_model_frame></axis></joint>
<link name="foot"><pose>0.3 0.1 -0.4 0 0 0</pose>{BODY.format('0 0 0', .2)}</link>
<joint name="knee" type="prismatic"><parent>leg</parent><child>foot</child>
  <axis><xyz>0 0 1</xyz></axis></joint></model></sdf>"""


FOUR_BAR = f"""<sdf version="1.9"><model name="four_bar">
<link name="ground"/>
<joint name="base" type="fixed"><parent>world</parent><child>ground</child></joint>
<link name="crank">{BODY.format('0.1 0 0', 1)}</link>
<joint name="motor" type="revolute"><parent>ground</parent><child>crank</child>
  <axis><xyz>0 1 0</xyz></axis></joint>
<link name="coupler"><pose>0.2 0 0 0 -1 0</pose>{BODY.format('0.2 0 0', 1)}</link>
<joint name="elbow" type="revolute"><parent>crank</parent><child>coupler</child>
  <axis><xyz>0 1 0</xyz></axis></joint>
<link name="rocker"><pose>0.6 0 0 0 -1.8 0</pose>{BODY.format('0.2 0 0', 1)}</link>
<joint name="hinge" type="revolute"><parent>ground</parent><child>rocker</child>
  <axis><xyz>0 1 0</xyz></axis></joint>
<joint name="close" type="ball"><parent>coupler</parent><child>rocker</child>
  <pose>0.35 0 0 0 0 0</pose></joint></model></sdf>"""


def pose(x=0, y=0, z=0, rpy=(0, 0, 0)):
    transform = np.eye(4)
    transform[:3, :3], transform[:3, 3] = rotation_from_rpy(rpy), (x, y, z)
    return transform


class Twin:
    """The same robot, built in MuJoCo from poses, anchors and axes in the world."""

    def __init__(self):
        self.spec, self.poses = mujoco.MjSpec(), {'world': np.eye(4)}
        self.spec.compiler.balanceinertia = False

    def add(self, name, parent, place, com, mass):
        relative = np.linalg.inv(self.poses[parent]) @ place
        body = (self.spec.worldbody if parent == 'world' else self.spec.body(parent)).add_body(
            name=name, pos=relative[:3, 3])
        mujoco.mju_mat2Quat(body.quat, relative[:3, :3].ravel())
        turn = rotation_from_rpy((0.3, -0.2, 0.1))
        full = turn @ [[.02, .001, 0], [.001, .03, -.002], [0, -.002, .04]] @ turn.T
        body.mass, body.ipos, body.explicitinertial = mass, com, True
        body.fullinertia = full[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        self.poses[name] = place

    def joint(self, name, body, anchor, axis, kind='HINGE'):
        place = np.linalg.inv(self.poses[body])
        self.spec.body(body).add_joint(
            name=name, type=getattr(mujoco.mjtJoint, f'mjJNT_{kind}'),
            pos=(place @ [*anchor, 1])[:3], axis=place[:3, :3] @ axis)

    def inverse(self, model, **values):
        """Torques by name for positions, velocities and accelerations by name."""
        engine = self.spec.compile()
        data = mujoco.MjData(engine)
        for name, (q, qd, qdd) in values.items():
            data.joint(name).qpos, data.joint(name).qvel, data.joint(name).qacc = q, qd, qdd
        engine.opt.gravity = model.gravity
        mujoco.mj_inverse(engine, data)
        return {name: float(data.joint(name).qfrc_inverse[0]) for name in values}, data


def arm_twin():
    """`ARM`, whose poses are composed by hand."""
    twin, model = Twin(), pose(z=0.2, rpy=(0.1, 0, 0))
    upper = model @ pose(0.1, 0, 0.3, (0.2, 0.3, 0.4))
    mark = upper @ pose(0.3, 0.1, 0, np.deg2rad((90, 0, 30)))
    turn = np.eye(4)
    turn[:3, :3] = [[0, -1, 0], [0, 0, -1], [1, 0, 0]]  # of the quaternion
    lower = mark @ pose(0.1) @ turn
    nut = lower @ pose(0.2, rpy=(0, 0.5, 0))
    cross = nut @ pose(0, 0.1, 0.1)
    wheel, gear = model @ pose(0.4), model @ pose(0, 0.4)
    twin.add('upper', 'world', upper, (0.1, 0, 0.02), 2)
    twin.joint('pan', 'upper', (model @ [0.05, 0.02, 0.1, 1])[:3], model[:3, :3] @ [0, 0.6, 0.8])
    twin.add('lower', 'upper', lower, (0, 0.05, 0.1), 1)
    twin.joint('tilt', 'lower', mark[:3, 3], -mark[:3, 2])
    twin.add('nut', 'lower', nut, (0, 0, 0.1), 0.5)
    twin.joint('thread', 'nut', nut[:3, 3], nut[:3, 0])
    twin.joint('advance', 'nut', nut[:3, 3], nut[:3, 0], 'SLIDE')
    twin.add('cross', 'nut', cross, (0, 0, 0), 0.4)
    for name, axis in (('cardan_axis', 0), ('cardan_axis2', 1)):
        twin.joint(name, 'cross', (cross @ [0.01, 0, 0, 1])[:3], cross[:3, axis])
    for name, body, place, com, mass, sign in (('spin', 'wheel', wheel, (0.1, 0, 0), 0.3, 1),
                                               ('turn', 'gear', gear, (0, 0.1, 0), 0.6, -1)):
        twin.add(body, 'world', place, com, mass)
        twin.joint(name, body, place[:3, 3], sign * place[:3, 2])
    return twin
