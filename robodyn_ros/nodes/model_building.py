"""Builds a model that is ready to run from texts, and checks it; independent of ROS.

Nodes run this in a separate process with limits on time and memory (`HelperProcess`), so that even
a malicious text cannot disturb control.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.check import CheckReport, check_model
from robodyn_ros.description.effort import with_effort
from robodyn_ros.description.urdf import parse_urdf
from robodyn_ros.description.yaml import parse_yaml
from robodyn_ros.dynamics import RobotDynamics, dynamics_of
from robodyn_ros.dynamics.efforts import commanded_model
from robodyn_ros.errors import RobodynError, UnknownNameError
from robodyn_ros.model import Model, build_model

LONGEST_ERROR = 2000  # characters


@dataclass(frozen=True)
class Payload:
    """A body that is attached to a link, in addition to the description.

    Attributes
    ----------
    link : str
        Name of the link.
    mass : float
        Mass, kg.
    com : array-like, shape (3,)
        Centre of mass in the link's frame, m.
    inertia : array-like, shape (3, 3)
        Inertia tensor about the centre of mass, kg m^2.
    """

    link: str
    mass: float
    com: ArrayLike
    inertia: ArrayLike


@dataclass(frozen=True)
class BuildRequest:
    """The data from which a model is built.

    Attributes
    ----------
    text : str
        URDF text.
    motors : str or None
        Path of the YAML file with motor data; None if there are none.
    motors_text : str or None
        Text of the motor data, in place of a path.
    payload : Payload or None
        A body that is attached to a link.
    payload_is_new : bool
        Whether an unknown link of the payload is an error; otherwise the payload is dropped.
    options : dict
        Keyword arguments of `build_model`, and ``friction_width``, ``loops`` and, if there are
        some, ``temperatures`` of joints.
    kernels : tuple of str
        Methods of `Dynamics` to compile; their machine code is then in the cache.
    commands : bool
        Whether the dynamics are those of commanded torques, see `make_dynamics`.
    """

    text: str
    motors: str | None
    motors_text: str | None
    payload: Payload | None
    payload_is_new: bool
    options: dict[str, Any]
    kernels: tuple[str, ...]
    commands: bool = False


@dataclass(frozen=True)
class Built:
    """A model, or the reason why there is none.

    Attributes
    ----------
    model : Model or None
        The model with its payload.
    error : str
        The reason why there is no model.
    payload : Payload or None
        The attached payload.
    notes : list of str
        Further remarks for the user.
    check : CheckReport or None
        The result of the check of the model, without its meshes.
    """

    model: Model | None
    error: str = ''
    payload: Payload | None = None
    notes: list[str] = field(default_factory=list)
    check: CheckReport | None = None


def build(request: BuildRequest) -> Built:
    """Build a model; errors in the texts are returned, not raised."""
    try:
        return _build(request)
    except RobodynError as error:
        return Built(None, str(error)[:LONGEST_ERROR])
    except RecursionError:
        return Built(None, 'its texts are nested too deeply')
    except Exception as error:  # a malicious text may cause any error
        return Built(None, f'{type(error).__name__}: {error}'[:LONGEST_ERROR])


def _build(request: BuildRequest) -> Built:
    options = request.options
    motors: Any = request.motors if request.motors_text is None else read_motors(
        request.motors_text)
    description = parse_urdf(request.text, motors=motors)
    if options['effort']:
        description = with_effort(description, options['effort'])
    model = build_model(description, base=options['base'],
                        gravity=options['gravity'],
                        locked_joints=options['locked_joints'],
                        rotor_model=options['rotor_model'])
    if options.get('temperatures'):
        model = _at_temperatures(model, options['temperatures'])
    if model.floating and options['base'] != 'floating':
        raise RobodynError(_floating_base(model))
    payload, notes = request.payload, []
    if payload is not None and payload.link not in model.link_frames:
        if request.payload_is_new:
            raise UnknownNameError('link', payload.link[:80], model.link_frames)
        notes.append(f'payload on {payload.link!r} is dropped: the new description has no such '
                     'link')
        payload = None
    if payload is not None:
        loaded = model.with_payload(payload.link, payload.mass, payload.com, payload.inertia)
        if payload.mass:
            model = loaded
        else:
            payload = None  # a mass of 0 removes the payload, whose values must still be valid
    dynamics = make_dynamics(model, options, commands=request.commands)
    dynamics.warm_up(*request.kernels)
    try:
        check = check_model(model, thorough=False, dynamics=dynamics.tree
                              if dynamics.model is model else None)
    except RobodynError as error:
        check = None
        notes.append(f'the model cannot be checked: {error}'[:LONGEST_ERROR])
    return Built(model, '', payload, notes, check)


def _floating_base(model: Model) -> str:
    """Return why a node without measurements of the base refuses a robot whose base floats."""
    joint = next((finding.joint for finding in model.findings
                  if (finding.quantity, finding.value) == ('type', 'floating')), 'at the root')
    return (f"the base {model.description.root!r} floats (joint {joint!r} of type 'floating'); "
            'only the node dynamics supports this, with odometry_topic or imu_topic '
            '(docs/howto/quadruped.md); valid for all nodes, if the base is held: a joint of type '
            "'fixed'")


def _at_temperatures(model: Model, temperatures: dict[str, float]) -> Model:
    """Return the model with the friction of some temperatures, degrees Celsius by joint."""
    for name in temperatures:
        if name not in model.joint_names:
            raise UnknownNameError('joint in temperature_joints', name[:80], model.joint_names)
    return model.at_temperature([temperatures.get(name, np.nan) for name in model.joint_names])


def make_dynamics(model: Model, options: dict[str, Any], *,
                  commands: bool = False) -> RobotDynamics:
    """Return the dynamics of a model, with its closed loops if it has some.

    With ``commands``, they are those of the torques that are to be commanded: without gravity and
    friction where the robot adds them itself.

    Raises
    ------
    RobodynError
        The loops do not fit the model.
    """
    if options['loops']:
        model.require_fixed_base('nodes with closed loops')
    return dynamics_of(commanded_model(model) if commands else model, options['loops'],
                       friction_width=options['friction_width'])


def read_motors(text: str) -> dict[str, Any] | None:
    """Return the content of a motor YAML text; None if it is empty.

    Raises
    ------
    RobodynError
        The text is not valid YAML, or not a mapping.
    """
    content = parse_yaml(text, 'the motor data') if text.strip() else None
    if content is None:
        return None
    if not isinstance(content, dict):
        raise RobodynError('the motor data are not a mapping; valid: motor YAML, see '
                           'docs/reference/files.md')
    return content


def rotor_model_of(model: Model) -> str:
    """Return how rotor inertia is modelled: ``none``, ``armature`` or ``full``."""
    if np.isfinite(model.spin_axis[:, 0]).any():
        return 'full'
    return 'armature' if model.armature.any() else 'none'
