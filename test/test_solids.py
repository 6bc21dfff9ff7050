"""Solids from geometry, and the inertials that links without one receive from them."""

import re
from pathlib import Path

import numpy as np
import pytest
from robots import PANDA_URDF, joint, link, robot

import robodyn_ros as rd
from robodyn_ros.commands.main import main
from robodyn_ros.description import solids
from robodyn_ros.description.repair import add_missing_inertials
from robodyn_ros.description.urdf_writer import inertial_text
from robodyn_ros.spatial import is_inertia

SOLIDS = {
    'box': ((0.1, 0.2, 0.3), 'size="0.05 0.1 0.15"'),
    'sphere': ((0.2,), 'size="0.2"'),
    'cylinder': ((0.1, 0.4), 'size="0.1 0.2"'),
    'capsule': ((0.1, 0.4), 'size="0.1 0.2"'),
}


@pytest.mark.parametrize('kind', SOLIDS)
def test_solids_agree_with_mujoco(kind):
    import mujoco

    sizes, written = SOLIDS[kind]
    oracle = mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody><body><freejoint/><geom type="{kind}" {written} density="700"/>'
        '</body></worldbody></mujoco>')
    inertial = getattr(solids, kind)(*sizes).inertial(density=700)
    assert inertial.mass == pytest.approx(oracle.body_mass[1], rel=1e-12)
    np.testing.assert_allclose(np.sort(np.linalg.eigvalsh(inertial.inertia)),
                               np.sort(oracle.body_inertia[1]), rtol=1e-12)


def test_a_box_has_the_inertia_of_the_closed_form():
    inertial = solids.box(0.1, 0.2, 0.3).inertial(mass=12.0)
    np.testing.assert_allclose(np.diag(inertial.inertia), [0.13, 0.10, 0.05])


def test_meshes_and_primitives_agree(tmp_path):
    import trimesh

    path = tmp_path / 'box.stl'
    trimesh.creation.box((0.1, 0.2, 0.3)).apply_translation((1, 2, 3)).export(path)
    mesh, box = solids.mesh_solid(path, (-2, 2, 2)), solids.box(0.2, 0.4, 0.6)
    assert mesh.volume == pytest.approx(box.volume, rel=1e-6) and mesh.note == ''
    np.testing.assert_allclose(mesh.com, [-2, 4, 6], rtol=1e-6)
    np.testing.assert_allclose(mesh.moment, box.moment, atol=1e-6 * box.moment.max())
    open_mesh = trimesh.load(path)
    open_mesh.update_faces(np.arange(len(open_mesh.faces)) > 1)
    open_mesh.export(tmp_path / 'open.stl')
    hull = solids.mesh_solid(tmp_path / 'open.stl')
    assert 'convex hull' in hull.note and hull.volume == pytest.approx(0.006, rel=1e-5)


def test_errors_name_unusable_meshes(tmp_path):
    cases = {'none.stl': None, 'rubbish.stl': b'hello', 'flat.obj': b'v 0 0 0\nv 1 0 0\nv 0 1 0\n'
             b'f 1 2 3\n', 'picture.png': b'x', 'empty.ply': b''}
    for name, content in cases.items():
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(rd.DescriptionError, match=name):
            solids.mesh_solid(path)
    for name in ('http://127.0.0.1:9/a.stl', 'package://nowhere/a.stl', 'a.stl', ''):
        with pytest.raises(rd.DescriptionError, match='is not found'):
            solids.find_mesh(name, [tmp_path])


def test_several_solids_are_combined():
    halves = [solids.box(0.1, 0.2, 0.1).moved(np.array([0, 0, z]), np.eye(3))
              for z in (-0.05, 0.05)]
    whole = solids.together(halves)
    np.testing.assert_allclose(whole.moment, solids.box(0.1, 0.2, 0.2).moment)
    np.testing.assert_allclose(whole.com, 0, atol=1e-16)


def test_missing_inertials_are_filled_and_marked():
    bare = re.sub(r'<inertial>.*?</inertial>', '<!-- mine -->', PANDA_URDF.read_text(),
                  flags=re.S)
    with pytest.raises(rd.DescriptionError, match='no link has an <inertial>'):
        rd.load_model(bare)
    text, done = add_missing_inertials(bare, 1000, folders=(PANDA_URDF.parent,))
    model = rd.load_model(text)
    filled = {entry.name: entry.inertial for entry in model.description.links if entry.inertial}
    assert set(filled) == {name for name, what in done.items() if 'estimated' in what}
    assert 'panda_link0' not in filled  # the root moves nothing
    assert text.count('robodyn: estimated') == len(filled) == 10
    assert '<!-- mine -->' in text and 'no geometry' in done['panda_link8']
    assert all(is_inertia(inertial.inertia) for inertial in filled.values())
    assert 1.0 < filled['panda_link1'].mass < 6.0  # 2.9 to 5 kg in published models
    again, nothing = add_missing_inertials(text, 1000, folders=(PANDA_URDF.parent,))
    assert 'panda_link1' not in nothing
    untouched = add_missing_inertials(PANDA_URDF.read_text(), 1000)[0]
    np.testing.assert_array_equal(rd.load_model(untouched).standard_parameters,
                                  rd.load_model(PANDA_URDF).standard_parameters)


def test_unusual_geometry_raises_nothing():
    shapes = ''.join(f'<collision>{content}</collision>' for content in (
        '', '<geometry/>', '<geometry><box/></geometry>', '<geometry><box size="1 2"/></geometry>',
        '<geometry><sphere radius="nan"/></geometry>', '<geometry><donut/></geometry>',
        '<origin xyz="a b c"/><geometry><sphere radius="1"/></geometry>',
        '<geometry><sphere radius="-1"/></geometry>',
        '<geometry><mesh filename="package://nowhere/x.stl"/></geometry>',
        '<origin xyz="1 0 0"/><geometry><sphere radius="0.5"/></geometry>'))
    text = robot(link('a', 1.0), link('b', 1.0).replace('</link>', shapes + '</link>'),
                 joint('j', 'revolute', 'a', 'b'))
    kinds = [shape.kind for shape in rd.load_model(text).description.links[1].collision]
    assert kinds == ['mesh', 'sphere']


def test_commands(tmp_path, capsys):
    assert main(['inertia', 'box', '0.1', '0.2', '0.3', '--mass', '12']) == 0
    assert capsys.readouterr().out.strip() == inertial_text(
        solids.box(0.1, 0.2, 0.3).inertial(mass=12))
    assert main(['inertia', 'sphere', '-1', '--mass', '1']) == 2
    assert main(['inertia', 'sphere', '1', '--density', '0']) == 2
    bare, fixed = tmp_path / 'bare.urdf', tmp_path / 'fixed.urdf'
    shape = '<collision><geometry><box size="0.1 0.1 0.4"/></geometry></collision></link>'
    bare.write_text(robot(link('a', 1.0), link('b').replace('/>', '>' + shape)
                          if '/>' in link('b') else link('b').replace('</link>', shape),
                          joint('j', 'revolute', 'a', 'b')))
    assert main(['check', str(bare), '--fix', str(fixed), '--density', '2700']) == 0
    assert 'estimated' in capsys.readouterr().err
    assert rd.load_model(fixed).inertial_parameters[0, 6] == pytest.approx(0.004 * 2700)
    assert Path(fixed).read_text().count('<inertial>') == 2
