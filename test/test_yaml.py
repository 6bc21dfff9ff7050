"""Untrusted YAML and other files: every failure is a package error, at bounded cost."""

import os
import time

import numpy as np
import pytest

import robodyn_ros as rd
from robodyn_ros.description.section import Section
from robodyn_ros.description.yaml import MAX_BYTES, MAX_ENTRIES, parse_yaml
from robodyn_ros.dynamics.loops import read_loops
from robodyn_ros.errors import shown
from robodyn_ros.excitation import Excitation
from robodyn_ros.files import check_regular, open_regular, read_regular
from robodyn_ros.identification import LogFormat
from robodyn_ros.simulation.truth import perturbed_urdf

ROBOT = ('<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>'
         '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
         '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>')
LETTERS = 'abcdefghi'
ALIASES = 'a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n' + ''.join(
    f'{after}: &{after} [{", ".join([f"*{before}"] * 9)}]\n'
    for before, after in zip(LETTERS, LETTERS[1:], strict=False))

# text, and what the error says; each of them once made a reader fail differently
HOSTILE = {
    'an invalid date': ('joints: {j: {gear_ratio: 2020-13-45}}', "gear_ratio.*'2020-13-45'"),
    'aliases of aliases': (ALIASES, 'entries'),
    'an alias of itself': ('a: &a [*a]', 'alias'),
    'an alias without an anchor': ('a: *b', 'alias'),
    'a long integer': ('joints: {j: {gear_ratio: ' + '1' * 5000 + '}}', 'digits'),
    'a hundred digits': ('joints: {j: {gear_ratio: ' + '9' * 100 + '}}', 'gear_ratio'),
    'depth of lists': ('[' * 100_000, 'nested deeper'),
    'depth of mappings': ('a:\n' + '\n'.join(' ' * k + 'a:' for k in range(1, 500)), 'nested'),
    'a tag that runs code': ('a: !!python/object/apply:os.system [true]', 'tag'),
    'a tag of a number': ('joints: {j: {gear_ratio: !!int x}}', 'tag'),
    'a tag of a date': ('a: !!timestamp x', 'tag'),
    'a tag of bytes': ('a: !!binary x', 'tag'),
    'a key that is a list': ('? [1]\n: 2', 'key'),
    'a key twice': ('joints: {j: {gear_ratio: 2, gear_ratio: 3}}', "'gear_ratio' is given twice"),
    'two documents': ('joints: {}\n---\njoints: {}', 'second document'),
    'a null character': ('joints: \0', 'character'),
    'a tab': ('joints:\n\tj: {}', 'line 2'),
    'too many bytes': ('#' * (MAX_BYTES + 1), 'bytes'),
    'a long text': ('joints: {j: {carrier: "' + 'x' * 20_000 + '"}}', 'characters'),
    'many entries': ('joints: [' + '1,' * (MAX_ENTRIES + 1) + ']', 'entries'),
    'a merge of a number': ('<<: 1', '<<'),
    'another type': ('joints: 1', 'joints.*not a mapping'),
    'no number': ('joints: {j: {gear_ratio: [1]}}', 'gear_ratio'),
    'a decimal comma': ('joints: {j: {gear_ratio: "1,5"}}', 'decimal comma'),
    'true': ('joints: {j: {gear_ratio: true}}', 'gear_ratio'),
}


def readers(path):
    """Every reader of YAML in the package."""
    return {'motors': lambda: rd.load_model(ROBOT, motors=path),
            'loops': lambda: read_loops(path),
            'truth': lambda: perturbed_urdf(ROBOT, path),
            'log format': lambda: LogFormat.read(path),
            'excitation': lambda: Excitation.from_yaml(path)}


@pytest.mark.parametrize('case', HOSTILE)
def test_hostile_yaml_raises_a_package_error(case, tmp_path):
    text, culprit = HOSTILE[case]
    path = tmp_path / 'hostile.yaml'
    path.write_text(text)
    with pytest.raises(rd.RobodynError, match=culprit):
        rd.load_model(ROBOT, motors=path)
    for name, read in readers(path).items():
        started = time.process_time()
        with pytest.raises(rd.RobodynError, match='hostile.yaml') as caught:
            read()
        assert len(str(caught.value)) < 1000, name
        assert time.process_time() - started < 1.0, name


@pytest.mark.parametrize('text', ['root:x:0:0:root:/root:/bin/bash\nbin:x:1:1::/bin/false\n',
                                  '[secret, {token: secret}]', '"secret"', 'a: secret: b',
                                  '@secret'])
def test_the_content_of_another_file_is_not_repeated(text, tmp_path):
    path = tmp_path / 'other'
    path.write_text(text)
    for read in readers(path).values():
        with pytest.raises(rd.RobodynError) as caught:
            read()
        assert 'secret' not in str(caught.value) and 'root:' not in str(caught.value)


def test_plain_values():
    read = parse_yaml('a: [1, -2.5, 1e-5, .inf, 010, 0x10, true, null, yes, 1:50, 2020-01-02]\n'
                      'b: &b {x: 1}\nc: {<<: *b, y: "1"}\n1: one\n')
    assert read == {'a': [1, -2.5, 1e-5, np.inf, 10, 16, True, None, 'yes', '1:50', '2020-01-02'],
                    'b': {'x': 1}, 'c': {'x': 1, 'y': '1'}, '1': 'one'}
    assert parse_yaml('') is None and parse_yaml(b'\xef\xbb\xbfa: 1') == {'a': 1}


def test_values_of_a_mapping_are_checked_as_those_of_a_file():
    huge: list = [1] * 10
    for _ in range(9):
        huge = [huge] * 10
    for value in (huge, 10**6000, 1 + 2j, object(), np.array([1 + 2j]), float('nan'), 1e300, {}):
        for key in ('gear_ratio', 'spin_axis', 'carrier', 'rotor_in_link', 'motor_friction'):
            if (key, value) == ('motor_friction', {}):
                continue
            with pytest.raises(rd.RobodynError, match=key) as caught:
                rd.load_model(ROBOT, motors={'joints': {'j': {key: value}}})
            assert len(str(caught.value)) < 500
    assert len(shown(huge)) <= 200 and shown(10**6000) == 'an integer of 19932 bits'
    with pytest.raises(rd.UnknownNameError, match="'gear_ration'.*did you mean 'gear_ratio'"):
        Section({'gear_ration': 1}, 'here', ['gear_ratio'])


def test_only_regular_files_of_bounded_size_are_opened(tmp_path):
    fifo, big, link = tmp_path / 'fifo', tmp_path / 'big', tmp_path / 'link'
    os.mkfifo(fifo)
    big.write_bytes(b'x' * 11)
    link.symlink_to('/dev/zero')
    for path, reason in ((fifo, 'FIFO'), (link, 'device'), (tmp_path, 'a folder'), (big, '11'),
                         (tmp_path / 'none', 'No such file'), ('a\0b', 'null'),
                         ('/proc/self/status', 'more than 10')):
        with pytest.raises(rd.DescriptionError, match=reason):
            read_regular(path, 10)
        with pytest.raises(rd.LogError, match=reason):
            read_regular(path, 10, error=rd.LogError)
    assert read_regular(big, 11) == b'x' * 11 and check_regular(big, 11) == big
    with open_regular(big, 11) as file:
        assert file.read(2) == b'xx'
    for read in readers(fifo).values():
        with pytest.raises(rd.RobodynError, match='FIFO'):
            read()
