"""Writes the C header: facts about the exported code, and its functions."""

from __future__ import annotations

import textwrap

import numpy as np

from robodyn_ros._version import __version__
from robodyn_ros.description.robot import CURVE
from robodyn_ros.dynamics.joint_terms import friction_widths
from robodyn_ros.errors import RobodynError
from robodyn_ros.export.c_functions import SINCOS_ERROR, SINCOS_LIMIT
from robodyn_ros.export.package import Package
from robodyn_ros.export.values import FORMAT, structure_of, urdf_hash
from robodyn_ros.model import Model, build_model

NAMES = {'positions': 'positions of all joints in a closed pose, rad or m',
         'q': 'joint positions, rad or m', 'qd': 'joint velocities, rad/s or m/s',
         'qdd': 'joint accelerations, rad/s^2 or m/s^2',
         'tau': 'joint torques or forces, N m or N',
         'base': 'motion of the base in the axes of the root link: angular velocity, rad/s, its '
                 'derivative, rad/s^2, and the acceleration of the origin minus gravity, as an '
                 'accelerometer measures it, m/s^2',
         'timing': 'time since the last step, s, and bandwidth of the observer, Hz',
         'observer': 'the result of the last step'}
FLOATING = {'q': 'position of the base, m, its quaternion x y z w, of any length but 0, and joint '
                 'positions, rad or m',
            'qd': 'linear and angular velocity of the base in its own axes, m/s and rad/s, then '
                  'joint velocities',
            'qdd': 'the time derivatives of the elements of qd',
            'tau': 'force and moment on the base in its own axes, N and N m, then joint torques '
                   'or forces'}


def facts(package: Package) -> list[tuple[str, str]]:
    """Return facts about the code for its users: pairs of a heading and its text."""
    model, dialect = package.model, package.dialect
    sincos = 'of the C library' if not dialect.own_sincos else (
        f'polynomials of this source; absolute error below {SINCOS_ERROR[dialect.single]:g} for '
        f'angles up to {SINCOS_LIMIT[dialect.single]:g} rad')
    return [
        ('Written by', f'robodyn_ros {__version__}'),
        ('Description', f'robot {model.name}, URDF with SHA-256 {urdf_hash(model) or "unknown"}'),
        ('Parameters', package.origin or _parameters(model)),
        ('Gravity', f'({", ".join(f"{g:g}" for g in model.gravity)}) m/s^2 in the root frame'),
        ('Friction', _friction(package)),
        ('Efforts', str(model.effort)),
        ('Rotors', _rotors(model)),
        ('Payload', 'none besides the parameters' + (
            f'; see {package.prefix}_add_payload' if package.parametric else '')),
        ('Numbers', f'{dialect.real}; matrices are row-major'),
        ('Sine, cosine', sincos),
        ('Calls', 'keep no state and allocate no memory, so that threads may share all functions; '
                  'the array of the result may also be one of the arguments'),
    ]


def joint_lines(package: Package) -> list[str]:
    """Return a line for each joint, in the order of all arrays."""
    model = package.model
    first = model.velocity_names[:model.first_joint]
    lines = [f'{k:3}  {name}  base: {"m/s, N" if k < 3 else "rad/s, N m"}'
             for k, name in enumerate(first)]
    for k, name in enumerate(package.dynamics.joint_names, len(first)):
        prismatic = model.prismatic[model.body_joints.index(name)]
        lines.append(f'{k:3}  {name}  ' + ('prismatic: m, m/s, N' if prismatic else
                                           'revolute: rad, rad/s, N m'))
    return lines


def header_text(package: Package) -> str:
    """Return the whole header."""
    prefix, upper, real = package.prefix, package.prefix.upper(), package.dialect.real
    n, model = package.dynamics.n, package.model
    lines = ['/*', f' * Equations of motion of {_comment(model.name)}.', ' *']
    for heading, text in facts(package):
        lines += textwrap.wrap(_comment(text), 99, initial_indent=f' * {heading + ":":14}',
                               subsequent_indent=' *' + ' ' * 15)
    order = 'Velocities, in the order of all arrays but q' if model.floating else \
        'Joints, in the order of all arrays'
    lines += [' *', f' * {order}:',
              *(f' * {_comment(line)}' for line in joint_lines(package))]
    if package.loops is not None:
        lines += [' *', ' * All joints, in the order of `positions`:',
                  *(f' * {k:3}  {_comment(name)}' for k, name in enumerate(model.joint_names))]
    lines += [' */', f'#ifndef {upper}_H', f'#define {upper}_H', '',
              f'#define {upper}_VERSION "{__version__}"',
              f'#define {upper}_URDF_SHA256 "{urdf_hash(model)}"',
              f'#define {upper}_STRUCTURE "{structure_of(model)}"',
              f'#define {upper}_JOINTS {len(package.dynamics.joint_names)}']
    if model.floating:
        lines += [f'#define {upper}_POSITIONS {model.nq}', f'#define {upper}_VELOCITIES {n}']
    if package.loops is not None:
        lines.append(f'#define {upper}_ALL_JOINTS {model.n}')
    lines += ['', '#ifdef __cplusplus', 'extern "C" {', '#endif', '',
              f'extern const char *const {prefix}_joint_names['
              f'{len(package.dynamics.joint_names)}];', '']
    if model.floating:
        lines[-1:] = [f'extern const char *const {prefix}_velocity_names[{n}];', '']
    meanings = {**NAMES, **FLOATING} if model.floating else NAMES
    for function in package.functions:
        comment = [function.meaning, *(f'{name}: {meanings[name]}.' for name, _ in
                                       function.arguments if name in meanings)]
        lines += [*_block(' '.join(comment)), *_declaration(package.signature(function)), '']
    if package.loops is not None:
        lines += _loops(package)
    if package.parametric:
        lines += _parametric(package, real)
    lines += ['#ifdef __cplusplus', '}', '#endif', '', '#endif', '']
    return '\n'.join(lines)


def _parametric(package: Package, real: str) -> list[str]:
    prefix, upper, count = package.prefix, package.prefix.upper(), package.parameters
    links = [f'    {upper}_LINK_{name.upper()},' for name in package.payload_links]
    return [
        *_block('Standard parameters: inertia about the origin of the body frame (kg m^2), mass '
                '(kg), first moments (kg m), friction of the link and of the motor (viscous, '
                'Coulomb, offset), reflected rotor inertia Ia. Their names, PARAMETER:JOINT, or '
                'PARAMETER:LINK for a floating base, and their nominal values:'),
        f'#define {upper}_PARAMETERS {count}',
        f'extern const char *const {prefix}_parameter_names[{count}];',
        f'extern const {real} {prefix}_parameters[{count}];', '',
        *_block('Links to which a payload can be fixed.'), 'typedef enum {', *links,
        f'    {upper}_LINKS', f'}} {prefix}_link;', '',
        *_block('A payload: mass in kg; centre of mass in the link frame, m; inertia about the '
                'centre of mass, Ixx Ixy Ixz Iyy Iyz Izz in the axes of the link, kg m^2.'),
        'typedef struct {', f'    {real} mass, com[3], inertia[6];', f'}} {prefix}_payload;', '',
        *_block('Computes the parameters of the robot with a payload. Returns 1, or 0 if there is '
                'no such link. Always start from the parameters without a payload, since an '
                'earlier payload is not removed.'),
        *_declaration(f'int {prefix}_add_payload(const {real} parameters[{count}], '
                      f'{prefix}_link link, const {prefix}_payload *payload, {real} '
                      f'loaded[{count}])'), '',
        *_block('Results of reading a file of values: success; the file has another format or '
                'version; it is for a robot with another structure; it has too few or too many '
                'values; a value is not a finite number (or the locale uses a decimal comma).'),
        'enum {', f'    {upper}_VALUES_GOOD, {upper}_VALUES_FORMAT, {upper}_VALUES_STRUCTURE,',
        f'    {upper}_VALUES_COUNT, {upper}_VALUES_NUMBER', '};', '',
        *_block(f'Reads the text of a file that was written by `robodyn export --values`, format '
                f'{FORMAT}. The parameters change only on success.'),
        *_declaration(f'int {prefix}_read_values(const char *text, {real} parameters[{count}])'),
        '']


def _loops(package: Package) -> list[str]:
    real, b, n = package.dialect.real, package.model.n, package.dynamics.n
    return [
        *_block('Closes the loops by a fixed number of Newton steps. q: the independent joints. '
                'positions: all joints; on entry a closed pose nearby (in a control loop, that of '
                f'the last cycle; initially {package.prefix}_home), on return the closed pose. '
                'Returns the largest remaining gap along an axis, m, which must be checked.'),
        f'{real} {package.prefix}_close_loops(const {real} q[{n}], {real} positions[{b}]);', '',
        f'extern const char *const {package.prefix}_all_joint_names[{b}];',
        f'extern const {real} {package.prefix}_home[{b}];', '']


def _declaration(signature: str) -> list[str]:
    return textwrap.wrap(signature + ';', 99, subsequent_indent='        ')


def _block(text: str) -> list[str]:
    return textwrap.wrap(f'/* {_comment(text)} */', 99, subsequent_indent='   ')


def _comment(text: str) -> str:
    """Return text that can neither end a comment nor continue a line."""
    return text.replace('*/', '* /').replace('/*', '/ *').replace('\\', '/').replace('\n', ' ')


def _parameters(model: Model) -> str:
    try:
        nominal = build_model(model.description, gravity=model.gravity, base='floating' if
                              model.floating else 'fixed').standard_parameters
    except RobodynError:
        nominal = np.empty(0)
    if nominal.shape != model.standard_parameters.shape:
        return 'of the description, with joints locked'
    if np.array_equal(nominal, model.standard_parameters):
        return 'those of the description'
    return 'changed since the description was read (a payload, or other values)'


def _friction(package: Package) -> str:
    model = package.model
    curved = [joint for joint, curve in zip(model.body_joints, model.friction_curve, strict=True)
              if not np.isnan(curve[0])]
    if curved and not package.parametric:
        slides = np.nan_to_num(model.friction_curve)[:, CURVE.index('presliding')] > 0
        return ('viscous, Coulomb and offset of links and motors; friction curves with Stribeck '
                f'or load-dependent friction at {", ".join(curved)}; dry friction follows '
                f'{_direction(package)}' + (
                    '; presliding friction is not contained, because these functions have no '
                    'memory: after a reversal, Coulomb friction has its full size at once'
                    if slides.any() else ''))
    if package.parametric or model.link_friction.any() or model.motor_friction.any():
        return ('viscous, Coulomb and offset of links and motors; Coulomb friction follows '
                f'{_direction(package)}')
    return 'the model has none'


def _direction(package: Package) -> str:
    """Return what dry friction follows, in words."""
    widths = friction_widths(package.model, package.dynamics.friction_width).link
    if not widths.any():
        return 'the sign of the speed'
    width = f'{widths[0]:g}' if (widths == widths[0]).all() else ', '.join(
        f'{width:.3g} ({joint})' for joint, width in zip(package.model.body_joints, widths,
                                                         strict=True))
    return (f's sqrt(s^2 + 4 w^2) / (s^2 + 2 w^2) of the speed s with w = {width} rad/s or m/s '
            '(0: its sign)')


def _rotors(model: Model) -> str:
    spinning = ~np.isnan(model.spin_axis[:, 0])
    parts = []
    for which, what in ((~spinning, 'reflected inertia of'), (spinning, 'as spinning bodies:')):
        names = [joint for joint, some in zip(model.body_joints, which & (model.armature != 0),
                                              strict=True) if some]
        if names:
            parts.append(f'{what} {", ".join(names)}')
    return '; '.join(parts) or 'the model has no rotor inertia'
