"""The quantities of a check report: names, labels, units and descriptions.

The tables for the terminal and the JSON schema both come from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SCHEMA_VERSION = 1  # version of the JSON; a new one where a key changes its name or meaning
NUMBER, TEXT = {'type': ['number', 'null']}, {'type': 'string'}
NUMBERS = {'type': ['array', 'null'], 'items': {'type': 'number'}}
TEXTS = {'type': 'array', 'items': TEXT}


@dataclass(frozen=True)
class Quantity:
    """One entry of a report.

    Attributes
    ----------
    label : str
        Heading in the tables for the terminal; empty: not in a table.
    unit : str
        Unit. If it depends on the type of the joint: the units for revolute and for prismatic
        joints, separated by a comma.
    schema : dict
        JSON schema of the value.
    meaning : str
        A description.
    """

    label: str
    unit: str
    schema: dict[str, Any]
    meaning: str


ROBOT = {
    'moving_joints': Quantity('independent joints', '', {'type': 'integer'},
                              'number of independent joints'),
    'total_mass_kg': Quantity('total mass', 'kg', NUMBER, 'sum of the masses of all links'),
    'reach_m': Quantity('reach', 'm', NUMBER, 'largest distance of a tip from the root frame, '
                        'over random poses'),
    'smallest_eigenvalue_of_m': Quantity('smallest eigenvalue of M', 'kg m^2, kg', NUMBER,
                                         'over the joint range; above 0 for a real robot'),
    'largest_eigenvalue_of_m': Quantity('largest eigenvalue of M', 'kg m^2, kg', NUMBER,
                                        'over the joint range'),
    'median_condition_of_m': Quantity('condition of M, median', '', NUMBER,
                                      'ratio of the largest to the smallest eigenvalue of the '
                                      'mass matrix, median over random poses'),
    'dominated_by_rotors': Quantity('dominated by their rotors', '', TEXTS,
                                    'joints at which the rotor has more than half of the inertia'),
}
LINK = {
    'link': Quantity('link', '', TEXT, 'name'),
    'mass_kg': Quantity('mass', 'kg', NUMBER, 'mass'),
    'centre_of_mass_m': Quantity('centre of mass', 'm', NUMBERS, "in the link's frame"),
    'principal_moments_kg_m2': Quantity('principal moments', 'kg m^2', NUMBERS,
                                        'about the centre of mass, the smallest first'),
    'radius_of_gyration_m': Quantity('gyration', 'm', NUMBER,
                                     'radius of gyration for the largest principal moment'),
    'density_kg_m3': Quantity('density', 'kg/m^3', NUMBER,
                              'mass over the volume of the collision geometry'),
    'note': Quantity('note', '', TEXT, 'a remark'),
    'geometry': Quantity('', '', TEXT, 'what is known of the collision geometry'),
}
JOINT = {
    'joint': Quantity('joint', '', TEXT, 'name'),
    'type': Quantity('type', '', TEXT, 'type in the URDF'),
    'axis': Quantity('axis', '', NUMBERS, "in the joint's frame"),
    'unit_of_position': Quantity('', '', {'enum': ['rad', 'm']}, 'of the limits of position; of '
                                 'velocities, per second'),
    'unit_of_effort': Quantity('', '', {'enum': ['N m', 'N']}, 'of efforts'),
    'lower': Quantity('lower', 'rad, m', NUMBER, 'least position'),
    'upper': Quantity('upper', 'rad, m', NUMBER, 'largest position'),
    'velocity_limit': Quantity('velocity', 'per s', NUMBER, 'largest velocity; null: none'),
    'effort_limit': Quantity('effort', 'N m, N', NUMBER, 'largest effort; null: none'),
    'viscous_friction': Quantity('viscous', 'effort s', NUMBER,
                                 'viscous friction, N m s/rad or N s/m'),
    'coulomb_friction': Quantity('Coulomb', 'N m, N', NUMBER, 'Coulomb friction'),
    'mimics': Quantity('mimics', '', TEXT, 'the joint that it follows'),
    'armature': Quantity('armature', 'kg m^2, kg', NUMBER,
                         "the rotor's inertia reflected to the joint"),
    'motor_from': Quantity('motor from', '', TEXT, 'sources of the motor data'),
    'largest_gravity': Quantity('gravity', 'N m, N', NUMBER,
                                'largest torque against gravity over random poses in the range'),
    'rotor_fraction': Quantity('rotor', 'fraction', NUMBER,
                               "the rotor's part of the inertia about the joint, median"),
}


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of the report (draft 2020-12)."""
    def entries(quantities: dict[str, Quantity]) -> dict[str, Any]:
        return {key: {**quantity.schema, 'description': quantity.meaning
                      + (f' ({quantity.unit})' if quantity.unit else '')}
                for key, quantity in quantities.items()}

    def of(quantities: dict[str, Quantity], *required: str) -> dict[str, Any]:
        return {'type': 'object', 'properties': entries(quantities), 'required': list(required),
                'additionalProperties': False}

    issue = {'type': 'object', 'required': ['severity', 'where', 'text'],
             'additionalProperties': False,
             'properties': {'severity': {'enum': ['fault', 'warning']}, 'where': TEXT,
                            'text': TEXT}}
    properties = {
        'schema_version': {'const': SCHEMA_VERSION},
        'name': {**TEXT, 'description': 'name of the robot'},
        'verdict': {'enum': ['good', 'doubtful', 'faulty']},
        'robot': of(ROBOT, 'moving_joints', 'total_mass_kg'),
        'links': {'type': 'array', 'items': of(LINK, 'link', 'mass_kg')},
        'joints': {'type': 'array', 'items': of(JOINT, 'joint', 'type', 'axis')},
        'tree': {**TEXT, 'description': 'links and joints as an indented tree'},
        'issues': {'type': 'array', 'items': issue, 'description': 'the most severe come first'},
    }
    return {'$schema': 'https://json-schema.org/draft/2020-12/schema',
            'title': 'robodyn check --json', 'type': 'object', 'properties': properties,
            'required': list(properties), 'additionalProperties': False}
