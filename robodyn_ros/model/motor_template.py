"""Writes a template of a motor YAML with the known values of every joint and their sources."""

from __future__ import annotations

from robodyn_ros.model.model import Model

_UNKNOWN = (
    ('gear_ratio', '100.0', 'motor speed over joint speed, with its sign'),
    ('rotor_inertia', '1.0e-5', "kg m^2 on the motor's side; or armature: reflected, kg m^2"),
    ('spin_axis', 'joint', "parallel to the joint's axis, or [x, y, z] in the carrier's frame"),
    ('motor_friction', '{viscous: 0.0, coulomb: 0.0, offset: 0.0}', "on the motor's shaft"),
    ('drive_gain', '1.0', 'joint torque per ampere'),
)


def motor_template(model: Model) -> str:
    """Return the text of a motor YAML: known values, and the other keys as comments."""
    lines = [f'# Motor data of {model.name}. Known values are filled in; complete the others.',
             'joints:']
    for i, joint in enumerate(model.body_joints):
        motor = model.description.motors.get(joint)
        sources = {f.quantity: f.source for f in model.findings if f.joint == joint and f.used}
        known: dict[str, str] = {}
        if motor is not None and 'gear_ratio' in sources:
            known['gear_ratio'] = repr(motor.gear_ratio)
        if motor is not None and motor.armature is not None:
            known['armature'] = repr(motor.armature)
        elif motor is not None and 'rotor_inertia' in sources:
            known['rotor_inertia'] = repr(motor.rotor_inertia)
        viscous, coulomb, offset = map(float, model.link_friction[i])
        known['link_friction'] = (f'{{viscous: {viscous!r}, coulomb: {coulomb!r}, '
                                  f'offset: {offset!r}}}')
        lines.append(f'  {joint}:')
        for key, value in known.items():
            origin = sources.get(key, "the URDF's <dynamics>" if key == 'link_friction' else '')
            lines.append(f'    {key}: {value}' + (f'  # {origin}' if origin else ''))
        lines += [f'    # {key}: {value}  # {meaning}' for key, value, meaning in _UNKNOWN
                  if key not in known and not (key == 'rotor_inertia' and 'armature' in known)]
    return '\n'.join(lines) + '\n'
