"""The tables of the report: numbers with units; values on a bound are marked ``at bound``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robodyn_ros.identification import Result, Rollout, Validation
from robodyn_ros.identification.friction_candidate import NAMES
from robodyn_ros.identification.writing import friction_terms
from robodyn_ros.model import Model
from robodyn_ros.spatial import Array, inertial_of

AT_BOUND = 1e-6  # relative to the largest value of its kind; a value below is on its bound
AT_CONSISTENCY = 1e-3  # the same for the eigenvalues of a body's second moment of mass


@dataclass(frozen=True)
class Table:
    """A table of texts.

    Attributes
    ----------
    headings : tuple of str
        Headings of the columns, with units.
    rows : list of list of str
        Rows; the first entry of each is its name.
    """

    headings: tuple[str, ...]
    rows: list[list[str]]


def number(value: float) -> str:
    """Return a number in the format of the report."""
    return f'{value:.4g}'


def percent(fraction: float) -> str:
    """Return a fraction as a percentage in the format of the report."""
    return f'{100 * fraction:.2f} %'


def bounded(value: float, largest: float) -> str:
    """Return a non-negative number, marked if it is on its bound zero."""
    return '0 (at bound)' if abs(value) <= AT_BOUND * largest else number(value)


def error_table(result: Result, validation: Validation) -> Table:
    """Errors of each joint, in the fit and in the validation."""
    rows = [[joint, *map(percent, errors), *map(number, sizes), f'{watson:.2f}']
            for joint, errors, sizes, watson in zip(
                validation.joint_names,
                zip(result.training_.relative_error, validation.relative_error,
                    validation.relative_error_filtered, validation.nominal, strict=True),
                zip(validation.rms, validation.largest, strict=True),
                result.uncertainty_.durbin_watson, strict=True)]
    return Table(('joint', 'fit, raw', 'validation, raw', 'validation, filtered',
                  'description, raw', 'rms, N m or N', 'largest, N m or N', 'Durbin-Watson'), rows)


def rollout_table(rollout: Rollout) -> Table:
    """Position errors of simulations along the validation, by joint and horizon."""
    kinds = (('open loop', rollout.open_loop), ('closed loop', rollout.closed_loop),
             ('description, open loop', rollout.description), ('travelled', rollout.travelled))
    rows = [[joint, *(number(errors[h, k]) if np.isfinite(errors[h, k]) else 'diverges'
                      for _, errors in kinds for h in range(len(rollout.horizons)))]
            for k, joint in enumerate(rollout.joint_names)]
    return Table(('joint', *(f'{title}, {horizon:g} s' for title, _ in kinds
                             for horizon in rollout.horizons)), rows)


def coverage_table(result: Result, validation: Validation) -> Table:
    """Ranges of positions, velocities and torques of each joint, compared with its limits."""
    joints = result.linear.joints
    lower, upper = result.evidence_.lower, result.evidence_.upper
    q, qd = np.concatenate(validation.q), np.concatenate(validation.qd)
    torque = np.abs(np.concatenate(validation.measured))
    slides = dict(zip(result.model.body_joints, result.model.prismatic, strict=True))
    rows = []
    for k, joint in enumerate(joints.joint_names):
        length, effort = ('m', 'N') if slides[joint] else ('rad', 'N m')
        span, speed = joints.upper[k] - joints.lower[k], joints.velocity_limit[k]
        reached = np.maximum(np.abs(lower[1, k]), np.abs(upper[1, k]))
        rows.append([
            f'{joint} ({length}, {effort})', _limits(joints.lower[k], joints.upper[k]),
            _limits(lower[0, k], upper[0, k]), _part(upper[0, k] - lower[0, k], span),
            _limits(q[:, k].min(), q[:, k].max()), _limit(speed), number(reached),
            _part(reached, speed), number(np.abs(qd[:, k]).max()), _limit(joints.effort_limit[k]),
            number(torque[:, k].max()),
            _within(lower[0, k] >= joints.lower[k], upper[0, k] <= joints.upper[k],
                    reached <= speed, torque[:, k].max() <= joints.effort_limit[k])])
    return Table(('joint (units)', 'position limits', 'in the fit', 'of the range',
                  'in the validation', 'velocity limit', 'largest in the fit', 'of the limit',
                  'in the validation', 'effort limit', 'largest measured', 'limits kept'), rows)


def _limits(low: float, high: float) -> str:
    return f'{low:.3g} to {high:.3g}' if np.isfinite(high - low) else 'none'


def _limit(value: float) -> str:
    return number(value) if np.isfinite(value) else 'none'


def _part(part: float, whole: float) -> str:
    return f'{100 * part / whole:.0f} %' if np.isfinite(whole) and whole > 0 else '-'


def _within(*kept: bool) -> str:
    names = ('position', 'position', 'velocity', 'effort')
    broken = dict.fromkeys(name for name, ok in zip(names, kept, strict=True) if not ok)
    return f'no: {", ".join(broken)}' if broken else 'yes'


def body_table(result: Result) -> Table:
    """Masses, centres and moments of inertia of the description and of the identified model."""
    rows = []
    before, after = result.linear.model, result.model
    for body, joint in enumerate(after.body_joints):
        if not after.inertial_parameters[body, 6]:
            continue
        for name, model in (('description', before), ('identified', after)):
            one = inertial_of(model.inertial_parameters[body])
            moments = np.diag(one.inertia)
            rows.append([joint if name == 'description' else '', name, number(one.mass),
                         *map(number, one.com), *(bounded(x, moments.max()) for x in moments),
                         'at bound' if _at_consistency(one.inertia) else ''])
    return Table(('body moved by', 'model', 'mass, kg', 'x, m', 'y, m', 'z, m', 'Ixx, kg m²',
                  'Iyy, kg m²', 'Izz, kg m²', 'physical consistency'), rows)


def _at_consistency(inertia: Array) -> bool:
    """Whether a body has hardly any extent along an axis, the bound of physical consistency."""
    second = np.linalg.eigvalsh(np.trace(inertia) / 2 * np.eye(3) - inertia)
    return bool(second[0] <= AT_CONSISTENCY * second[-1])


def drive_table(result: Result) -> Table:
    """Rotor inertia and friction of the description and of the identified model."""
    def values(model: Model) -> Array:
        friction = model.link_friction + model.motor_friction
        return np.column_stack([model.armature, friction])

    before, after = values(result.linear.model), values(result.model)
    largest = np.maximum(np.abs(before).max(axis=0), np.abs(after).max(axis=0))
    rows = []
    for body, joint in enumerate(result.model.body_joints):
        for name, one in (('description', before[body]), ('identified', after[body])):
            numbers = [bounded(x, size) if name == 'identified' and size > 0 else number(x)
                       for x, size in zip(one[:3], largest[:3], strict=True)]
            rows.append([joint if name == 'description' else '', name, *numbers, number(one[3])])
    return Table(('joint', 'model', 'rotor inertia, kg m² or kg',
                  'viscous friction, N m s/rad or N s/m', 'Coulomb friction, N m or N',
                  'offset, N m or N'), rows)


def friction_table(result: Result) -> Table:
    """Terms of friction beyond viscous and Coulomb friction and the offset."""
    slides = dict(zip(result.model.body_joints, result.model.prismatic, strict=True))
    rows = []
    for joint, sides in friction_terms(result).items():
        for side, terms in sides.items():
            for term, entry in terms.items():
                scale = ''
                if 'velocity' in entry:
                    scale = f'{number(entry["velocity"])} {"m/s" if slides[joint] else "rad/s"}'
                if 'distance' in entry:
                    scale = f'{number(entry["distance"])} {"m" if slides[joint] else "rad"}'
                unit = unit_of(term)
                if slides[joint]:
                    unit = unit.replace('N m', 'N').replace('rad', 'm')
                rows.append([joint, 'link' if side == 'l' else 'motor', NAMES[term],
                             number(entry['value']), unit, scale])
    return Table(('joint', 'side', 'term of friction', 'identified', 'unit',
                  'velocity or distance'), rows)


def ripple_table(result: Result) -> Table:
    """Torque ripple of the identified model: a row for each line."""
    rows = [[result.model.body_joints[body], str(one.harmonic), number(360 / one.harmonic),
             number(float(np.hypot(one.sine, one.cosine))), number(one.sine), number(one.cosine)]
            for body, lines in result.linear.friction.ripple.items() for one in lines]
    return Table(('joint', 'periods a turn', 'degrees each', 'amplitude, N m', 'sine, N m',
                  'cosine, N m'), rows)


def parameter_table(result: Result) -> Table:
    """The base parameters with their confidence intervals."""
    u = result.uncertainty_
    units = [unit_of(name) for name in result.base_.names]
    rows = [[name, unit, *(number(x) for x in (
        result.estimate_.values[k], u.deviation[k], *u.interval[k], result.nominal_[k])),
        'yes' if name in result.significant_ else 'no',
        'no' if u.interval[k, 0] <= 0 <= u.interval[k, 1] else 'yes']
        for k, (name, unit) in enumerate(zip(result.base_.names, units, strict=True))]
    return Table(('base parameter', 'unit', 'estimate', 'standard deviation', '95 % from', 'to',
                  'description', 'significant', '95 % without 0'), rows)


def unit_of(name: str) -> str:
    """Return the unit of a parameter for a revolute joint, from the parameter's name."""
    term = name.partition(':')[0]
    if term.startswith(('I', 'J')):
        return 'kg m²'
    if term in ('mx', 'my', 'mz'):
        return 'kg m'
    if term == 'm':
        return 'kg'
    if term.startswith(('Fv', 'Fa')):
        return 'N m s/rad'
    if term.startswith('Ft'):
        return 'none'  # friction over the transmitted torque
    if term.startswith('Fw'):
        return 'N m s/rad/K'
    if term.startswith('Fk'):
        return 'N m/K'
    if term == 'Kl':
        return 'N m/rad'
    return 'N m √(s/rad)' if term.startswith('Fr') else 'N m'


def criteria_table(validation: Validation) -> Table:
    """The criteria of the verdict: found values, thresholds and results."""
    return Table(('criterion', 'found', 'required', 'result'),
                 [[one.name, one.value, one.limit, one.result] for one in validation.criteria])


