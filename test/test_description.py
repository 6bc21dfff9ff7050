"""Robot descriptions: what is read, and the errors for broken ones."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from robots import PANDA_URDF, joint, link, planar_2r, robot

import robodyn_ros as rd
from robodyn_ros.description.xml import MAX_BYTES
from robodyn_ros.spatial import rotation_from_rpy

GOOD = planar_2r()
BOMB = ('<!DOCTYPE r [<!ENTITY e0 "aaaaaaaaaa">'
        + ''.join(f'<!ENTITY e{i + 1} "&e{i};&e{i};&e{i};&e{i};">' for i in range(30))
        + ']><robot name="r">&e30;</robot>')


def two(first, second=None):
    """A robot of two links, with one or two joints."""
    return robot(link('a', 1.0), link('b', 1.0), first, second or '')


def plain(name='j', kind='revolute', parent='a', child='b', **options):
    return joint(name, kind, parent, child, **options)


# what is wrong: (text, what the message must name)
BROKEN = {
    'empty': ('', 'empty'),
    'white space': (' \n ', 'empty'),
    'not XML': ('<robot', 'not well-formed'),
    'text': ('<hello', 'not well-formed'),
    'another root': ('<sdf/>', '<sdf>'),
    'no link': ('<robot name="r"/>', 'no link'),
    'no moving joint': (robot(link('a', 1.0)), 'no joint that moves'),
    'only fixed joints': (two(plain(kind='fixed')), 'no joint that moves'),
    'no inertial': (robot(link('a'), link('b'), plain()), 'no link has an <inertial>'),
    'no mass anywhere': (robot(link('a', 0.0), link('b', 0.0), plain()), 'with a mass'),
    'nan mass': (robot(link('a', 1.0), link('b', float('nan')), plain()), "link 'b'.*nan"),
    'inf': (robot(link('a', 1.0), link('b', float('inf')), plain()), "link 'b'.*inf"),
    '1e400': (GOOD.replace('mass value="1.5"', 'mass value="1e400"'), "link 'lower'.*1e400"),
    'a mass beyond reason': (GOOD.replace('mass value="1.5"', 'mass value="1e300"'), '1e300'),
    'an origin beyond reason': (GOOD.replace('xyz="0.7 0.0 0.0"', 'xyz="1e200 0.0 0.0"'), '1e200'),
    'negative mass': (robot(link('a', 1.0), link('b', -1.0), plain()), "link 'b'.*mass >= 0"),
    'decimal comma': (GOOD.replace('mass value="1.5"', 'mass value="1,5"'), 'decimal comma'),
    'commas in a vector': (GOOD.replace('xyz="0.7 0.0 0.0"', 'xyz="0,7 0,0 0,0"'), 'comma'),
    'underscores': (GOOD.replace('mass value="1.5"', 'mass value="1_5"'), '1_5'),
    'a word': (GOOD.replace('mass value="1.5"', 'mass value="heavy"'), 'heavy'),
    'two numbers': (GOOD.replace('xyz="0.7 0.0 0.0"', 'xyz="0.7 0.0"'), '3 numbers'),
    'no mass': (GOOD.replace('<mass value="1.5"/>', ''), "link 'lower'.*<mass>"),
    'mass without value': (GOOD.replace('<mass value="1.5"/>', '<mass/>'), "'value'"),
    'inertia without izz': (GOOD.replace('izz="0.03"', ''), "'izz'"),
    'two inertials': (GOOD.replace('</inertial></link>', '</inertial><inertial><mass value="1"/>'
                                   '</inertial></link>', 1), 'has 2 <inertial>'),
    'two links of a name': (robot(link('a', 1.0), link('a', 1.0), link('b', 1.0), plain()),
                            "link 'a'.*twice"),
    'two joints of a name': (robot(link('a', 1.0), link('b', 1.0), link('c', 1.0), plain(),
                                   plain(child='c')), "joint 'j'.*twice"),
    'two roots': (robot(link('a', 1.0), link('b', 1.0), link('c', 1.0), plain()), '2 root links'),
    'a cycle': (robot(link('r', 1.0), link('a', 1.0), link('b', 1.0), plain(),
                      plain('k', parent='b', child='a')), 'cycle'),
    'all in a cycle': (robot(link('a', 1.0), link('b', 1.0), plain(),
                             plain('k', parent='b', child='a')), 'cycle'),
    'its own parent': (two(plain(parent='b', child='b')), 'its own parent'),
    'two parents': (robot(link('a', 1.0), link('b', 1.0), plain(), plain('k')), 'already'),
    'no such parent': (two(plain(parent='x')), "parent link 'x' does not exist"),
    'no such child': (two(plain(child='x')), "child link 'x' does not exist"),
    'no parent': (two(plain().replace('<parent link="a"/>', '')), '<parent'),
    'no child': (two(plain().replace('<child link="b"/>', '')), '<child'),
    'parent without link': (two(plain().replace('<parent link="a"/>', '<parent/>')), '<parent'),
    'floating inside': (robot(link('a', 1.0), link('b', 1.0), link('c', 1.0), plain(),
                              plain('k', 'floating', 'b', 'c')),
                        "joint 'k'.*'floating' is not supported in this place"),
    'unknown type': (two(plain(kind='hinge')), "'hinge'.*revolute"),
    'no type': (two(plain().replace(' type="revolute"', '')), 'type'),
    'zero axis': (two(plain(axis=(0, 0, 0))), 'unit vector'),
    'tiny axis': (two(plain(axis=(0, 0, 1e-30))), 'unit vector'),
    'nan axis': (two(plain(axis=(0, 0, float('nan')))), 'nan'),
    'nan limit': (two(plain().replace('upper="3"', 'upper="nan"')), '<limit> upper'),
    'negative damping': (two(plain(extra='<dynamics damping="-1"/>')), 'damping >= 0'),
    'negative friction': (two(plain(extra='<dynamics friction="-1"/>')), 'friction >= 0'),
    'mimic of an unknown joint': (robot(
        link('a', 1.0), link('b', 1.0), link('c', 1.0), plain('finger_left'),
        plain('k', parent='b', child='c', extra='<mimic joint="finger_lef"/>')),
        "'finger_lef'.*did you mean 'finger_left'"),
    'mimic loop': (robot(link('a', 1.0), link('b', 1.0), link('c', 1.0),
                         plain(extra='<mimic joint="k"/>'),
                         plain('k', parent='b', child='c', extra='<mimic joint="j"/>')), 'mimics'),
    'mimics itself': (two(plain(extra='<mimic joint="j"/>')), 'itself'),
    'mimic without joint': (two(plain(extra='<mimic multiplier="2"/>')), "no 'joint'"),
    'nameless link': ('<robot><link/></robot>', '<link>.*no name'),
    'endless name': (two(plain('j' * 1000)), '<joint>.*a name of 1000 characters'),
    'name of two lines': (two(plain('j&#10;[ERROR] forged')), 'control characters'),
    'endless name of a robot': (f'<robot name="{"r" * 1000}"><link name="a"/></robot>', '<robot>'),
    'nameless joint': ('<robot><link name="a"/><joint type="fixed"/></robot>', 'no name'),
    'entities': (BOMB, 'DOCTYPE'),
    'external entity': ('<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot>&x;</robot>',
                        'DOCTYPE'),
    'network entity': ('<!DOCTYPE r SYSTEM "http://127.0.0.1:9/x.dtd"><robot/>', 'DOCTYPE'),
    'deep nesting': ('<robot>' + '<a>' * 240 + '</a>' * 240 + '</robot>', 'nested deeper'),
    'very deep nesting': ('<robot>' + '<a>' * 50000, 'not well-formed|nested deeper'),
    'huge': ('<robot>' + ' ' * (MAX_BYTES + 1) + '</robot>', 'bytes'),
    'ten thousand links': (robot(*(link(f'l{i}', 1.0) for i in range(10000))), 'more than'),
    'control characters': ('<robot name="r">\x00</robot>', 'not well-formed'),
    'lone surrogates': ('<robot name="\ud800"/>', 'invalid character'),
}


@pytest.mark.parametrize('case', BROKEN)
def test_broken_descriptions_name_the_culprit(case):
    text, culprit = BROKEN[case]
    with pytest.raises(rd.RobodynError, match=culprit):
        rd.load_model(text)


def test_errors_carry_the_line():
    text = '<robot name="r">\n<link name="a"/>\n\n<link name="a"/>\n</robot>'
    with pytest.raises(rd.DescriptionError, match='line 4') as caught:
        rd.load_model('<?xml version="1.0"\n?>' + text.replace('\n\n', '\n', 1))
    assert caught.value.line == 4 and caught.value.element == "link 'a'"


@pytest.mark.parametrize('text, problem', [
    ('<robot', 'not well-formed'), ('<arm/>', 'is not a URDF'),
    ('<robot name="r"><link name="a"><inertial><mass value="x"/></inertial></link></robot>',
     'mass')])
def test_errors_in_a_file_name_the_file(tmp_path, text, problem):
    path = tmp_path / 'broken_arm.urdf'
    path.write_text(text)
    with pytest.raises(rd.DescriptionError, match=f'broken_arm.urdf: .*{problem}') as raised:
        rd.load_model(path)
    assert raised.value.line or 'mass' in problem
    with pytest.raises(rd.DescriptionError) as raised:
        rd.load_model(text)
    assert 'broken_arm' not in str(raised.value)
    with pytest.raises(rd.DescriptionError, match='broken_arm.urdf: .*not well-formed'):
        path.write_text('<robot')
        rd.load_model(planar_2r(), srdf=path)


def test_files_that_cannot_be_read(tmp_path):
    for source in (tmp_path / 'none.urdf', tmp_path, 'no/such.urdf', 'x' * 5000, 'a\0b'):
        with pytest.raises(rd.DescriptionError, match='cannot be read'):
            rd.load_model(source)
    broken = tmp_path / 'latin.urdf'
    broken.write_bytes(GOOD.replace('upper', 'obér').encode('latin-1'))
    with pytest.raises(rd.DescriptionError, match='not well-formed'):
        rd.load_model(broken)
    big = tmp_path / 'big.urdf'
    big.write_bytes(b' ' * (MAX_BYTES + 1))
    with pytest.raises(rd.DescriptionError, match='bytes'):
        rd.load_model(big)


@pytest.mark.parametrize('variant', [
    '\ufeff' + GOOD, '<?xml version="1.0" encoding="latin-1"?>\n' + GOOD, '\n\n' + GOOD,
    GOOD.replace('</robot>', '<gazebo reference="x"><mesh url="http://127.0.0.1:9/"/></gazebo>'
                             '<sensor:camera/><link_of_mine/><!-- a comment --></robot>'),
    GOOD.replace('</inertial></link>', '</inertial><visual><geometry><mesh filename='
                 '"package://nowhere/x.dae"/></geometry><material name="m"/></visual></link>'),
    GOOD.replace('</robot>', '<transmission name="t"><joint name="ghost"/><actuator name="m">'
                             '<mechanicalReduction>3</mechanicalReduction></actuator>'
                             '</transmission></robot>'),
])
def test_elements_that_dynamics_do_not_need_are_ignored(variant):
    assert rd.load_model(variant).n == 2


def test_encodings_of_files(tmp_path):
    for encoding in ('utf-8', 'utf-8-sig', 'utf-16', 'iso-8859-1'):
        path = tmp_path / f'{encoding}.urdf'
        declared = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>'
        path.write_text(declared + GOOD.replace('name="test"', 'name="Größe"'), encoding=encoding)
        assert rd.load_model(path).name == 'Größe'


def test_doubtful_descriptions_load_with_a_finding():
    model = rd.load_model(robot(
        link('a', 1.0), link('b', 1.0), link('c', 1.0), link('d', 1.0), plain(axis=(0, 0, 2)),
        plain('k', parent='b', child='c', extra='<mimic joint="f"/>'),
        plain('f', kind='fixed', parent='c', child='d')))
    np.testing.assert_array_equal(model.axis[0], [0, 0, 1])
    said = '\n'.join(map(str, model.findings))
    assert 'its length is 2' in said and 'this one moves on its own' in said and model.n == 2


def test_limits_and_friction_are_read():
    model = rd.load_model(PANDA_URDF)
    assert model.upper[0] == 2.8973 and model.velocity_limit[0] == 2.175
    assert model.effort_limit[0] == 87 and model.link_friction[0, 0] == 0.003
    free = rd.load_model(two(plain(kind='continuous')))
    assert free.lower[0] == -np.inf and free.upper[0] == np.inf
    unknown = rd.load_model(two(plain().replace('velocity="5" effort="100"', '')))
    assert unknown.effort_limit[0] == np.inf and unknown.velocity_limit[0] == np.inf


def test_xacro(tmp_path):
    path = tmp_path / 'arm.urdf.xacro'
    path.write_text('<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
                    '<xacro:arg name="mass" default="1.5"/>'
                    + GOOD[len('<robot name="test">'):].replace(
                        'mass value="1.5"', 'mass value="$(arg mass)"'))
    assert rd.load_model(path).inertial_parameters[1, 6] == 1.5
    assert rd.load_model(path, xacro_arguments={'mass': '4'}).inertial_parameters[1, 6] == 4.0
    path.write_text('<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:ghost/></robot>')
    with pytest.raises(rd.DescriptionError, match='xacro'):
        rd.load_model(path)


def test_options():
    for gravity in ((0, 0), (0, 0, np.nan), 'down'):
        with pytest.raises(rd.ShapeError, match='three finite numbers'):
            rd.load_model(GOOD, gravity=gravity)
    with pytest.raises(rd.UnknownNameError, match='full, armature'):
        rd.load_model(GOOD, rotor_model='half')
    for position in (np.nan, 'half', None):
        with pytest.raises(rd.ValueRangeError, match='j1'):
            rd.load_model(GOOD, locked_joints={'j1': position})


def test_rpy_is_fixed_axis_xyz(rng):
    roll, pitch, yaw = rng.normal(size=3)
    about = [np.array([[1, 0, 0], [0, np.cos(roll), -np.sin(roll)], [0, np.sin(roll),
                                                                     np.cos(roll)]]),
             np.array([[np.cos(pitch), 0, np.sin(pitch)], [0, 1, 0],
                       [-np.sin(pitch), 0, np.cos(pitch)]]),
             np.array([[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]])]
    np.testing.assert_allclose(rotation_from_rpy([roll, pitch, yaw]),
                               about[2] @ about[1] @ about[0], atol=1e-15)


PIECES = ['<', '>', '"', '/', 'robot', 'link', 'joint', 'mimic', 'nan', '1e999', '&', ';', ' ',
          '<!--', ']]>', 'type="prismatic"', 'xyz="1 2"', '<inertial>', '\x00', 'ß', '-']


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, len(GOOD)), st.integers(0, 60), st.lists(st.sampled_from(PIECES),
                                                             max_size=4).map(''.join))
def test_damaged_descriptions_raise_only_package_errors(at, length, piece):
    try:
        rd.load_model(GOOD[:at] + piece + GOOD[at + length:])
    except rd.RobodynError as error:
        assert str(error)


def test_sources_that_are_not_descriptions_are_refused():
    assert rd.load_model(GOOD.encode()).n == 2
    for source in (None, 3, 2.5, ['a'], {}, True, object(), b'', b'\xff', 'nothing.urdf'):
        with pytest.raises(rd.DescriptionError):
            rd.load_model(source)
    for loaded in ({'mass': 1e9}, {'mass': 1 + 2j}, {'mass': 'heavy'}, {'mass': True},
                   {'mass': 1.0, 'com': (1j, 0, 0)}, {'mass': 1.0, 'com': ('0', '0', '0')},
                   {'mass': 1.0, 'com': (1e6, 0, 0)}, {'mass': 1.0, 'com': [[1], [1, 2]]},
                   {'mass': 1.0, 'inertia': np.eye(3) * 1j}):
        with pytest.raises(rd.RobodynError, match='payload|com|inertia'):
            rd.load_model(GOOD).with_payload('lower', **loaded)
    with pytest.raises(rd.ShapeError, match='gravity'):
        rd.load_model(GOOD, gravity=(0, 0, 1j))
    with pytest.raises(rd.ShapeError, match='table'):
        rd.model_from_dh([[0, 0, 0, 1j]], [None])
    for wrong in ([1.0, 2.0], 'far', [[1.0]], [None]):
        with pytest.raises(rd.ShapeError, match='lower'):
            rd.model_from_dh([[0, 0, 0, 0]], [None], lower=wrong)


def test_faults_of_public_descriptions_are_findings(tmp_path):
    """Robots in public repositories have these faults, and other readers load them."""
    path = tmp_path / 'version.urdf'
    for head in (b'<?xml version="0.0" ?>', b"\xef\xbb\xbf<?xml version='0.0' encoding='utf-8'?>"):
        path.write_bytes(head + GOOD.encode())
        assert rd.load_model(path).n == 2
    for head in (b'<!-- a -- b -->', b'<!-- a --><?xml version="1.0"?>',
                 b' <?xml version="1.0"?>'):
        path.write_bytes(head + GOOD.encode())
        assert rd.load_model(path).n == 2
    path.write_bytes(b'<!-- a -- b -->' + GOOD.encode().replace(b'</robot>', b'</robo>'))
    with pytest.raises(rd.DescriptionError, match='not well-formed'):
        rd.load_model(path)
    swapped = rd.load_model(two(plain().replace('upper="3"', 'upper="-4"')))
    assert swapped.lower[0] == -np.inf and swapped.upper[0] == np.inf
    twice = rd.load_model(robot(link('a', 1.0), link('b', 1.0), plain().replace(
        '<axis', '<axis xyz="1 0 0"/><origin xyz="9 9 9"/><axis')))
    np.testing.assert_array_equal(twice.axis[0], [1, 0, 0])
    np.testing.assert_array_equal(twice.translation[0], [0, 0, 0])
    text = two(plain(), """<transmission name="t"><joint name="j"/><actuator name="m">
        <mechanicalReduction>${ratio}</mechanicalReduction><motorInertia>1e99</motorInertia>
        </actuator></transmission>""")
    annotated = rd.load_model(text.replace('type="revolute"', 'type="revolute" armature="?"'))
    assert annotated.gear_ratio[0] == 1 and not annotated.armature.any()
    for model, words in ((swapped, ['above the upper']),
                         (twice, ['axis = 2 elements', 'origin = 2 elements']),
                         (annotated, ['${ratio}', '1e99', 'armature = ?'])):
        said = ' '.join(str(finding) for finding in model.findings if not finding.used)
        assert all(word in said for word in words), said


def test_a_joint_is_locked_together_with_those_that_mimic_it():
    text = robot(*(link(name, 1.0, (0.1, 0, 0.2)) for name in 'abcd'), plain(),
                 plain('k', parent='b', child='c',
                       extra='<mimic joint="j" multiplier="2" offset="0.5"/>'),
                 plain('l', parent='c', child='d'))
    one = rd.load_model(text, locked_joints={'j': 0.1})
    both = rd.load_model(text, locked_joints={'k': 0.7, 'j': 0.1})
    assert one.joint_names == both.joint_names == ('l',)
    np.testing.assert_array_equal(one.translation, both.translation)
    for locked, said in (({'k': 0.7}, "it mimics 'j'; valid: lock 'j'"),
                         ({'j': 0.1, 'k': 0.1}, "at 0.1: it mimics 'j'; valid: 0.7")):
        with pytest.raises(rd.DescriptionError, match=said):
            rd.load_model(text, locked_joints=locked)


def test_chained_mimics_follow_the_first_joint(rng):
    """q_l = 3 q_k - 1 and q_k = 2 q_j + 0.5, so q_l = 6 q_j + 0.5."""
    def chain(order, **mimics):
        joints = {'j': plain(), 'k': plain('k', parent='b', child='c', extra=mimics['k']),
                  'l': plain('l', parent='c', child='d', extra=mimics['l'])}
        return rd.load_model(robot(*(link(name, 1.0, (0.1, 0, 0.2)) for name in 'abcd'),
                                   *(joints[name] for name in order)))

    second = '<mimic joint="j" multiplier="2" offset="0.5"/>'
    direct = chain('jkl', k=second, l='<mimic joint="j" multiplier="6" offset="0.5"/>')
    for order in ('jkl', 'lkj'):
        model = chain(order, k=second, l='<mimic joint="k" multiplier="3" offset="-1"/>')
        assert model.joint_names == ('j',) and model.row[:, 0].tolist() == [1, 2, 6]
        assert model.offset.tolist() == [0, 0.5, 0.5]
        q, qd, qdd = rng.normal(size=(3, 1))
        assert rd.Dynamics(model).inverse_dynamics(q, qd, qdd) == pytest.approx(
            rd.Dynamics(direct).inverse_dynamics(q, qd, qdd))
        assert any('l: mimic = k -> j' in str(f).replace("'", '') or 'resolved to' in str(f)
                   for f in model.findings)
