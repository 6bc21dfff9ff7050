"""Exports robots of many kinds, compiles them and calls them from Python."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from robots import planar_2r, random_robot
from synthetic import own_robot

import robodyn_ros as rd
from robodyn_ros.export.functions import BASE_TERMS, DEFAULT_TERMS, exported_functions

ROOT = Path(__file__).parent.parent
OWN = ROOT / 'urdf'
STRICT = ('-Wall', '-Wextra', '-Werror', '-pedantic')
WITH_REGRESSOR = (*DEFAULT_TERMS, 'regressor')
WITH_OBSERVER = (*DEFAULT_TERMS, 'observer')
CONSUMER = '''
#include <cmath>
#include <cstdio>
#include "arm.hpp"
int main()
{
  arm::Dynamics dynamics;
  std::array<double, 3> q{0.1, 0.2, 0.3}, zero{};
  auto tau = dynamics.gravity(q);
  dynamics.set_payload(ARM_LINK_LINK3, arm_payload{1.0, {0.0, 0.0, 0.0}, {}});
  auto loaded = dynamics.inverse_dynamics(q, zero, zero);
  auto inertia = dynamics.mass_matrix(q);
  double same = 0;
#ifdef ARM_EIGEN
  arm::EigenDynamics other;
  Eigen::Matrix3d m = other.mass_matrix(Eigen::Vector3d(0.1, 0.2, 0.3));
  same = (m - m.transpose()).norm();
#endif
  std::printf("%.17g %.17g %.17g %g\\n", tau[1], loaded[1], inertia[0], same);
  return std::isfinite(tau[1]) ? 0 : 1;
}
'''


def compilers():
    """Return the C and the C++ compiler, None where there is none."""
    return shutil.which('gcc'), shutil.which('g++')


def compile_files(compiler, standard, folder, target, *flags):
    """Compile the sources of an export; every warning is an error."""
    files = [folder / name for name in ('self_test.c',) if '-shared' not in flags]
    files += [path for path in folder.glob('*.c') if path.name != 'self_test.c']
    language = ('-x', 'c++') if standard.startswith('c++') else ()
    done = subprocess.run([compiler, f'-std={standard}', *STRICT, *flags, *language, *files,
                           '-x', 'none', '-lm', '-o', target], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]


@dataclass
class Case:
    """A robot and how it is exported."""

    model: rd.Model
    terms: tuple[str, ...] = DEFAULT_TERMS
    loops: Path | None = None
    options: dict = field(default_factory=dict)

    def dynamics(self):
        return rd.dynamics_of(self.model, self.loops,
                              friction_width=self.options.get('friction_width'))

    def export(self, folder):
        return rd.export_c(self.model, folder, terms=self.terms, prefix='arm', loops=self.loops,
                           **self.options)


def spinning_rotors(text):
    return rd.load_model(text, motors={'joints': {
        'j1': {'gear_ratio': 50, 'rotor_inertia': 1e-3, 'spin_axis': 'joint'},
        'j2': {'gear_ratio': -30, 'rotor_inertia': 1e-3, 'spin_axis': [0, 1, 0],
               'motor_friction': {'viscous': 0.2, 'coulomb': 0.3, 'offset': 0.1}}}})


LOOPS = ROOT / 'config/robots'
# by their special feature; made when they are needed
CASES = {
    'plane': lambda: Case(rd.load_model(planar_2r(), gravity=(0, -9.81, 0)),
                          (*WITH_REGRESSOR, *BASE_TERMS, 'coriolis_matrix')),
    'mimic and branches': lambda: Case(rd.load_model(random_robot(3)),
                                       (*DEFAULT_TERMS, 'pose:l3', 'jacobian:l5')),
    'prismatic, any axes': lambda: Case(rd.load_model(random_robot(5))),
    'friction with a width': lambda: Case(rd.load_model(random_robot(8, joints=4)),
                                          options={'friction_width': 0.05}),
    'widths of the motor file': lambda: Case(rd.load_model(planar_2r(), motors={'joints': {
        'j1': {'friction_curve': {'coulomb': 1.0, 'stribeck': 0.5, 'stribeck_velocity': 0.2},
               'friction_width': 0.04},
        'j2': {'link_friction': {'coulomb': 0.5}, 'friction_width': 0.2}}})),
    'friction curves': lambda: Case(rd.load_model(planar_2r(), motors={'joints': {
        'j1': {'friction_curve': {'coulomb': 1.0, 'stribeck': 0.5, 'stribeck_velocity': 0.2}},
        'j2': {'friction_curve': {'viscous': 0.3, 'load': 0.1}}}})),
    'sliding joints': lambda: Case(rd.load_model(own_robot('scara')),
                                   (*DEFAULT_TERMS, 'pose:base')),
    'payload': lambda: Case(rd.load_model(own_robot('scara')).with_payload(
        'flange', 3.0, (0.1, 0, 0.05), np.diag([0.01, 0.02, 0.02]))),
    'spinning rotors': lambda: Case(spinning_rotors(planar_2r())),
    'armature': lambda: Case(rd.load_model(own_robot('flexible_2r'),
                                           motors=LOOPS / 'flexible_2r_motors.yaml')),
    'own sine': lambda: Case(rd.load_model(own_robot('articulated_3r')), WITH_OBSERVER,
                             options={'own_sincos': True}),
    'single': lambda: Case(rd.load_model(own_robot('articulated_3r')),
                           options={'single': True, 'own_sincos': True}),
    'single, C library': lambda: Case(rd.load_model(own_robot('rp_tip_mass')),
                                      options={'single': True}),
    'parametric': lambda: Case(rd.load_model(own_robot('articulated_3r')), WITH_OBSERVER,
                               options={'parametric': True, 'friction_width': 0.02}),
    'parametric with rotors': lambda: Case(spinning_rotors(planar_2r()),
                                           (*DEFAULT_TERMS, *BASE_TERMS),
                                           options={'parametric': True}),
    'five bars': lambda: Case(rd.load_model(own_robot('five_bar')),
                              (*WITH_REGRESSOR, *BASE_TERMS, 'pose:tip', 'jacobian:tip'),
                              LOOPS / 'five_bar_loops.yaml'),
    'parametric loops': lambda: Case(rd.load_model(own_robot('palletiser')),
                                     ('gravity', 'inverse_dynamics'),
                                     LOOPS / 'palletiser_loops.yaml', {'parametric': True}),
}


@cache
def case_of(name):
    """Return the robot with a special feature."""
    return CASES[name]()


class Library:
    """A compiled export, called through ctypes."""

    def __init__(self, path, case):
        self.library, self.case = ctypes.CDLL(str(path)), case
        self.type = np.float32 if case.options.get('single') else np.float64
        self.functions = {f.name: f for f in exported_functions(
            case.dynamics(), case.terms, parametric=bool(case.options.get('parametric')))}

    def call(self, name, *arguments):
        """Return the result of a function, of the shape that rd.Dynamics gives it."""
        function = self.functions[name]
        arrays = [np.ascontiguousarray(x, self.type) for x in arguments]
        assert [x.size for x in arrays] == [size for _, size in function.arguments]
        result = np.full(function.shape, np.nan, self.type)
        getattr(self.library, f'arm_{name}')(*(
            ctypes.c_void_p(x.ctypes.data) for x in (*arrays, result)))
        return result
