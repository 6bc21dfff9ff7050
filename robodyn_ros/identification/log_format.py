"""`LogFormat`: names, units and conventions of a log file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from robodyn_ros.description.section import Section
from robodyn_ros.errors import LogError
from robodyn_ros.keywords import checked_fields

SPELLINGS = {
    'time': ('t', 'time', 'stamp', 'timestamp'),
    'position': ('q', 'position', 'pos'),
    'velocity': ('qd', 'dq', 'velocity', 'vel'),
    'torque': ('tau', 'effort', 'torque', 'current', 'currents', 'motor_current', 'cur', 'i'),
    'motor_torque': ('tau_motor', 'motor_torque'),
    'extra': ('extra', 'tau_extra'),
    'reference': ('q_reference', 'reference'),
    'temperature': ('temperature', 'temp', 'motor_temperature', 'joint_temperature', 'motor_temp',
                    'joint_temp'),
}
CURRENTS = ('current', 'currents', 'motor_current', 'cur', 'i')  # accepted as torques


@checked_fields
@dataclass(frozen=True)
class LogFormat:
    """Names, units and conventions of a log file; every field has a default.

    Attributes
    ----------
    topic, motor_topic : str
        Topics of type sensor_msgs/JointState in a bag. The efforts of the second are the torques
        of the motors.
    temperature_topic : str
        Topic of the joints' temperatures in a bag: control_msgs/DynamicJointState (the interface
        ``temperature`` of a joint), or sensor_msgs/Temperature, whose ``frame_id`` names the joint
        or its link; ``{joint}`` in the name of the topic stands for the name of each joint.
    time, position, velocity, torque, motor_torque, extra, reference, temperature : str
        Names of arrays in an NPZ file, or of groups of columns in a CSV file (``position`` reads
        ``position_JOINT``, ``position_1`` or ``JOINT_position``). By default, the usual spellings
        are tried; currents are read where there is no torque. ``2-8`` stands for the second to
        the eighth column of a CSV file without a header, ``1`` for its first.
    joints : sequence of str
        Names of the joints in the order of the columns, if the file has none.
    rate : float
        Sample rate in Hz, if the file has no time.
    unit_of_time : float
        Length of one unit of time in s, for example 1e-3 for milliseconds.
    degrees : bool
        Whether positions and velocities are in degrees.
    side : str
        ``joint``, or ``motor`` if positions and torques are those of the motors; they are then
        converted by the gear ratios or the gear matrix of the model.
    position_offset : sequence of float
        Offsets that are added to the joint positions, rad or m.
    torque_scale : sequence of float
        Factors on the torques, for example drive gains in N m/A.
    odometry_topic : str
        Topic of type nav_msgs/Odometry in a bag, for robots with a floating base.
    wrench_topics : mapping of str to str
        Topic of type geometry_msgs/WrenchStamped in a bag for each link on which a wrench was
        measured.
    wrench_axes : str
        ``root``, or ``link`` if wrenches are given in the axes of their links.
    """

    topic: str = 'joint_states'
    motor_topic: str = ''
    temperature_topic: str = ''
    time: str = ''
    position: str = ''
    velocity: str = ''
    torque: str = ''
    motor_torque: str = ''
    extra: str = ''
    reference: str = ''
    temperature: str = ''
    joints: Sequence[str] = ()
    rate: float = 0.0
    unit_of_time: float = 1.0
    degrees: bool = False
    side: str = 'joint'
    position_offset: Sequence[float] = ()
    torque_scale: Sequence[float] = ()
    odometry_topic: str = 'odom'
    wrench_topics: Mapping[str, str] = field(default_factory=dict)
    wrench_axes: str = 'root'

    @classmethod
    def read(cls, source: Mapping[str, Any] | str | Path) -> LogFormat:
        """Read a format from a YAML file, or take a mapping as its content.

        Raises
        ------
        LogError
            If the file cannot be read, or if a value is of the wrong type.
        UnknownNameError
            If a key is not a field of `LogFormat`.
        """
        entry = Section.read(source, 'log format', [key.name for key in fields(cls)],
                             error=LogError)
        values: dict[str, Any] = {}
        for key in entry:
            if key == 'joints':
                values[key] = entry.names(key)
            elif key in ('position_offset', 'torque_scale'):
                values[key] = entry.array(key, (None,)).tolist()
            elif key in ('rate', 'unit_of_time'):
                values[key] = entry.number(key, above=0)
            elif key == 'wrench_topics':
                topics = entry.section(key)
                values[key] = {link: topics.text(link) for link in topics}
            elif key == 'degrees':
                values[key] = entry.flag(key)
            else:
                values[key] = entry.text(key)
        return cls(**values)
