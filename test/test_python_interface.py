"""The library in Python: misspelt keywords, arguments of wrong types, completion, types."""

import ast
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from robots import planar_2r

import robodyn_ros as rd
from robodyn_ros.errors import UnknownArgumentError, WrongTypeError
from robodyn_ros.excitation.plan import PlanOptions
from robodyn_ros.identification.settings import SettingOptions

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope='module')
def model():
    return rd.load_model(planar_2r())


@pytest.mark.parametrize('call, meant', [
    (lambda model: rd.load_model(planar_2r(), moters='motors.yaml'), 'motors'),
    (lambda model: rd.identify(model, [], frictoin='coulomb'), 'friction'),
    (lambda model: rd.optimise_excitation(model, budgt=1.0), 'budget'),
    (lambda model: rd.Settings(payload_mas=1.0), 'payload_mass'),
    (lambda model: rd.Limits(hieght=0.1), 'height'),
    (lambda model: rd.FilterSettings(cutof=10.0), 'cutoff'),
    (lambda model: rd.export_c(model, 'folder', singel=True), 'single'),
])
def test_the_error_for_a_misspelt_keyword_suggests_the_nearest_one(model, call, meant):
    with pytest.raises(UnknownArgumentError, match=f"did you mean '{meant}'") as raised:
        call(model)
    assert isinstance(raised.value, TypeError) and meant in raised.value.valid


@pytest.mark.parametrize('call, culprit', [
    (lambda model: rd.load_model(None), 'NoneType'),
    (lambda model: rd.load_model(planar_2r(), motors=3), "not the path of a file"),
    (lambda model: rd.load_model(planar_2r(), locked_joints='joint1'), 'locked_joints'),
    (lambda model: rd.load_model('arm.xacro', xacro_arguments=3), 'xacro_arguments'),
    (lambda model: rd.build_model(None), 'description'),
    (lambda model: rd.Dynamics(None), 'model'),
    (lambda model: rd.Dynamics('arm.urdf'), 'load_model'),
    (lambda model: rd.FlexibleDynamics(None), 'model'),
    (lambda model: rd.dynamics_of(None), 'robot'),
    (lambda model: rd.dynamics_of(model, 3), "not the path of a file"),
    (lambda model: rd.inertia_bounds(None), 'model'),
    (lambda model: rd.base_parameters(None), 'robot'),
    (lambda model: rd.read_log(None, model), 'path'),
    (lambda model: rd.read_log('log.csv', None), 'model'),
    (lambda model: rd.identify(model, None), 'logs'),
    (lambda model: rd.identify(model, [None]), 'logs'),
    (lambda model: rd.identify(model, [], settings={}), 'settings'),
    (lambda model: rd.validate(None, []), 'result'),
    (lambda model: rd.reduce(None), 'result'),
    (lambda model: rd.write_urdf(None, 'arm.urdf'), 'model'),
    (lambda model: rd.optimise_excitation(None), 'model'),
    (lambda model: rd.optimise_excitation(model, 3), 'limits'),
    (lambda model: rd.export_c(None, 'folder'), 'robot'),
    (lambda model: rd.Dynamics(model).gravity(None), 'q'),
])
def test_arguments_of_wrong_types_raise_package_errors(model, call, culprit):
    with pytest.raises(rd.RobodynError, match=culprit):
        call(model)


def test_the_error_for_a_wrong_type_names_it_and_what_is_valid(model):
    with pytest.raises(WrongTypeError) as raised:
        rd.Dynamics('arm.urdf')
    assert str(raised.value) == ("model is 'arm.urdf' (type str); valid: a Model, as load_model "
                                 'returns it')


def test_typed_keywords_are_the_fields_of_the_dataclasses():
    for typed, cls in ((SettingOptions, rd.Settings), (PlanOptions, rd.Plan)):
        stated = {field.name: field.type for field in fields(cls)}
        assert {name: getattr(kind, '__forward_arg__', kind)
                for name, kind in typed.__annotations__.items()} == stated


def test_completion_offers_only_the_public_names():
    assert set(rd.__all__) <= set(dir(rd))
    assert not {'package', 'TYPE_CHECKING', 'sys'} & set(dir(rd))
    for name in rd.__all__:
        assert getattr(rd, name) is not None
    with pytest.raises(AttributeError) as raised:
        rd.identfy  # noqa: B018
    assert raised.value.name == 'identfy' and raised.value.obj is rd  # for Python's "did you mean"


def test_every_lazily_imported_name_is_declared_for_type_checkers():
    tree = ast.parse((ROOT / 'robodyn_ros/__init__.py').read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    declared = {name.name: node.module.partition('.')[2] for node in block.body
                for name in node.names}
    assert declared == rd._LAZY


@pytest.mark.slow
def test_lazily_imported_names_have_types(tmp_path):
    """Also what is imported when it is first used; a misspelt option is found by the checker."""
    path = tmp_path / 'use.py'
    path.write_text('from robodyn_ros import Log, Model, Result, identify\n'
                    'import robodyn_ros as rd\n'
                    'def good(model: Model, log: Log) -> Result:\n'
                    "    return identify(model, log, friction='coulomb', guard=0.1)\n"
                    'def bad(model: Model, log: Log) -> int:\n'
                    "    return rd.identify(model, log, frictoin='coulomb')\n")
    done = subprocess.run([sys.executable, '-m', 'mypy', '--strict', '--follow-imports=silent',
                           '--config-file', ROOT / 'pyproject.toml', path],
                          cwd=ROOT, capture_output=True, text=True, timeout=300)
    lines = [line for line in done.stdout.splitlines() if 'error' in line and 'use.py' in line]
    assert len(lines) == 2, done.stdout + done.stderr
    assert 'Unexpected keyword argument "frictoin"' in lines[0]
    assert 'got "Result", expected "int"' in lines[1]
