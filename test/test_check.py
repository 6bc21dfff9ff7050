"""`robodyn check` and `robodyn motors`, on every robot and on deliberate faults."""

import json

import numpy as np
import pytest
import yaml
from robots import BROKEN_MIMICS, PANDA_URDF, ROBOTS, joint, link, planar_2r, robot
from test_dynamics_oracle import EVERY_ROBOT, MASSLESS, WITHOUT

import robodyn_ros as rd
from robodyn_ros.check import check_robot
from robodyn_ros.check.quantities import json_schema
from robodyn_ros.commands.main import main
from robodyn_ros.model.motor_template import motor_template


def issues_at(report, where):
    return ' '.join(issue.text for issue in report.issues if where in issue.where)


KINDS = {'object': (dict,), 'array': (list,), 'string': (str,), 'integer': (int,),
         'number': (int, float), 'null': (type(None),)}


def misfits(value, schema, where='report'):
    """What violates a JSON schema, for the part of the language that `json_schema` uses."""
    if 'const' in schema or 'enum' in schema:
        return [] if value in schema.get('enum', [schema.get('const')]) else [where]
    kinds = schema['type'] if isinstance(schema['type'], list) else [schema['type']]
    if not isinstance(value, sum((KINDS[kind] for kind in kinds), ())):
        return [f'{where}: {value!r}']
    if isinstance(value, list):
        return [one for entry in value for one in misfits(entry, schema['items'], where)]
    if not isinstance(value, dict):
        return []
    known = schema['properties']
    found = [f'{where}.{key} is missing' for key in schema['required'] if key not in value]
    found += [f'{where}.{key} is unknown' for key in value if key not in known]
    return found + [one for key in value if key in known
                    for one in misfits(value[key], known[key], f'{where}.{key}')]


def test_the_test_of_schemas_detects_misfits():
    report = json.loads(check_robot(PANDA_URDF).to_json())
    assert not misfits(report, json_schema())
    del report['robot']['total_mass_kg']
    report['links'][0]['mass_kg'] = 'heavy'
    report['joints'][0]['colour'] = 'red'
    report['schema_version'] = 0
    assert misfits(report, json_schema()) == [
        'report.schema_version', 'report.robot.total_mass_kg is missing',
        "report.links.mass_kg: 'heavy'", 'report.joints.colour is unknown']


@EVERY_ROBOT
def test_every_robot_gets_a_report(name, capsys):
    code = main(['check', '--json', str(ROBOTS / name)])
    printed = capsys.readouterr()
    if name in WITHOUT or name == BROKEN_MIMICS:
        assert code == 2 and len(printed.err.splitlines()) == 1
        return
    facts = json.loads(printed.out)
    assert code == (facts['verdict'] == 'faulty')
    assert not misfits(facts, json_schema())
    if name in MASSLESS:
        assert facts['verdict'] == 'faulty' and 'moves no inertia' in printed.out


def test_the_report_states_facts():
    import pinocchio as pin

    report = check_robot(PANDA_URDF)
    assert report.verdict == 'doubtful' and report.exit_code == 0
    oracle = pin.buildModelFromXML(PANDA_URDF.read_text())
    root = next(entry['mass_kg'] for entry in report.links if entry['link'] == 'panda_link0')
    moving = sum(inertia.mass for inertia in oracle.inertias[1:])
    assert report.robot['total_mass_kg'] == pytest.approx(root + moving)
    text = report.to_text()
    assert 'panda: doubtful' in text and 'panda_link7  (panda_joint7, revolute)' in text
    second = next(entry for entry in report.joints if entry['joint'] == 'panda_joint2')
    assert 40 < second['largest_gravity'] < second['effort_limit'] == 87.0
    assert report.joints[0]['largest_gravity'] == 0.0  # its axis is vertical


FAULTS = {
    'triangle': (planar_2r(i2=0.001).replace('ixx="0.01"', 'ixx="0.5"'), 'link lower', 'triangle'),
    'negative': (planar_2r().replace('izz="0.03"', 'izz="-0.03"'), 'link lower', 'negative'),
    'no mass': (planar_2r().replace('<mass value="1.5"/>', '<mass value="0"/>'), 'link lower',
                'without a mass'),
    'massless joint': (robot(link('a', 1.0), link('b', 1.0, inertia=(1, 0, 0, 1, 0, 1)), link('c'),
                             joint('j', 'revolute', 'a', 'b'),
                             joint('k', 'revolute', 'b', 'c')), 'joint k', 'moves no inertia'),
}
WARNINGS = {
    'massless link': (FAULTS['massless joint'][0], 'link c', 'mass is taken as zero'),
    'point': (planar_2r().replace('ixx="0.01" ixy="0.0" ixz="0.0" iyy="0.03" iyz="0.0" izz="0.03"',
                                  'ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"'),
              'link lower', 'a point'),
    'units': (planar_2r(i2=3000.0).replace('ixx="0.01"', 'ixx="3000"'), 'link lower', 'gyration'),
    'far': (planar_2r(l2=25.0), 'link lower', '25.00 m from its frame'),
    'weak': (robot(link('a', 1.0), link('b', 10.0, (1, 0, 0), (1, 0, 0, 1, 0, 1)),
                   joint('j', 'revolute', 'a', 'b', axis=(0, 1, 0)).replace(
                       'effort="100"', 'effort="50"')), 'joint j', 'cannot hold its load'),
    'no effort limit': (planar_2r().replace('effort="100"', ''), 'joint j1', 'no effort limit'),
    'swapped limits': (planar_2r().replace('lower="-3"', 'lower="4"', 1), 'j1',
                       'above the upper'),
    'no number': (planar_2r().replace('<limit', '<dynamics armature="?"/><limit', 1), 'j1',
                  'not a finite number'),
}


@pytest.mark.parametrize('case', FAULTS)
def test_faults_are_found(case):
    text, where, what = FAULTS[case]
    report = check_robot(text)
    assert report.verdict == 'faulty' and report.exit_code == 1
    assert what in issues_at(report, where)


@pytest.mark.parametrize('case', WARNINGS)
def test_warnings_are_given(case):
    text, where, what = WARNINGS[case]
    report = check_robot(text)
    assert report.verdict != 'good' and what in issues_at(report, where)


def test_rotors_that_dominate_are_named():
    motors = {'joints': {'j2': {'gear_ratio': 100, 'rotor_inertia': 1e-4}}}
    report = check_robot(planar_2r(), motors=motors)
    assert report.robot['dominated_by_rotors'] == ['j2']


def test_the_inertial_is_compared_with_the_geometry():
    def said_of(inside, mass=2.0):
        text = planar_2r(m2=mass).replace('</inertial></link>', f'</inertial>{inside}</link>')
        report = check_robot(text)
        return ' '.join(d.text for d in report.issues if d.where == 'link lower')

    box = '<collision><geometry><box size="{0} {0} {0}"/></geometry></collision>'
    assert 'denser than lead' in said_of(box.format(0.01))
    assert 'lighter than foam' in said_of(box.format(1.5))
    assert said_of(box.format(0.3)) == ''
    away = box.format(0.2).replace('<geometry>', '<origin xyz="1 0 0"/><geometry>')
    assert 'outside its geometry' in said_of(away)
    assert 'too large for' in said_of(box.format(0.2).replace('collision', 'visual'), mass=0.01)
    assert said_of('<collision><geometry><mesh filename="none.stl"/></geometry></collision>') == ''


def test_data_without_effect_on_the_dynamics_raise_no_issue():
    point = '<inertial><mass value="1"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>'
    ghost = ('<transmission name="t"><joint name="wheel"/><actuator name="m"><mechanicalReduction>'
             '{}</mechanicalReduction></actuator></transmission></robot>')
    collision = '<collision><geometry><sphere radius="{}"/></geometry></collision></link>'
    seen = '<visual><geometry><box size="1 1 1"/></geometry></visual></link>'
    before = check_robot(planar_2r()).issues
    for text in (
            planar_2r().replace('</robot>', ghost.format('1.0')),
            planar_2r().replace('</robot>', f'<link name="plate">{point}</inertial></link>'
                                + joint('bolt', 'fixed', 'base', 'plate') + '</robot>'),
            planar_2r().replace('</inertial></link>', '</inertial>' + collision.format(0.001)),
            planar_2r().replace('</inertial></link>', '</inertial>'
                                + collision.format(0.1).replace('</link>', seen))):
        assert check_robot(text).issues == before, text
    assert check_robot(planar_2r().replace('</robot>', ghost.format('50'))).issues != before


def test_the_motor_template_is_a_valid_motor_file(tmp_path, capsys):
    source = planar_2r().replace('</robot>', '''<transmission name="t"><joint name="j1"/>
        <actuator name="m"><mechanicalReduction>50</mechanicalReduction>
        <motorInertia>2e-5</motorInertia></actuator></transmission></robot>''')
    path = tmp_path / 'arm.urdf'
    path.write_text(source)
    assert main(['motors', str(path)]) == 0
    text = capsys.readouterr().out
    content = yaml.safe_load(text)
    assert content['joints']['j1']['gear_ratio'] == 50 and '# drive_gain' in text
    model = rd.load_model(planar_2r(), motors=content)
    np.testing.assert_allclose(model.armature, rd.load_model(source).armature)
    assert motor_template(rd.load_model(PANDA_URDF)).count('link_friction') == 9
