"""Writes the C++ header: the same functions for std::array, std::span and Eigen's types."""

from __future__ import annotations

from robodyn_ros.export.functions import Function
from robodyn_ros.export.package import Package

TEXT = '''// C++ classes around {prefix}.h; written by robodyn_ros.
#ifndef {upper}_HPP
#define {upper}_HPP

#include <array>
#include <cstddef>

#include "{prefix}.h"

#if __cplusplus >= 202002L
#include <span>
#endif
#if defined(__has_include) && !defined({upper}_NO_EIGEN)
#if __has_include(<Eigen/Core>)
#include <Eigen/Core>
#define {upper}_EIGEN
#endif
#endif

namespace {prefix}
{{

#if __cplusplus >= 202002L
template <std::size_t size>
using Input = std::span<const {real}, size>;
#else
template <std::size_t size>
using Input = const std::array<{real}, size> &;
#endif

/// The equations of motion on arrays of the standard library; matrices are row-major.
class Dynamics
{{
public:
  static constexpr std::size_t joints = {joints};
{sizes}
  static const char * joint_name(std::size_t joint) {{return {prefix}_joint_names[joint];}}
{state}{standard}}};

#ifdef {upper}_EIGEN
/// The same on vectors and matrices of Eigen.
class EigenDynamics
{{
public:
  template <int size>
  using Vector = Eigen::Matrix<{real}, size, 1>;
  template <int size>
  using EigenInput = const Eigen::Ref<const Vector<size>> &;
{state}{eigen}}};
#endif

}}  // namespace {prefix}

#endif
'''

SIZES = '''  static constexpr std::size_t positions = {nq}, velocities = {n};
'''

STATE = '''
  /// The parameters that all functions use; initially the nominal ones.
  std::array<{real}, {count}> parameters = nominal();

  static std::array<{real}, {count}> nominal()
  {{
    std::array<{real}, {count}> values{{}};
    for (std::size_t i = 0; i < values.size(); ++i) {{
      values[i] = {prefix}_parameters[i];
    }}
    return values;
  }}

  /// Adds a payload to the nominal parameters; false if there is no such link.
  bool set_payload({prefix}_link link, const {prefix}_payload & payload)
  {{
    return {prefix}_add_payload({prefix}_parameters, link, &payload, parameters.data()) == 1;
  }}

  /// Reads values from the text of a file; returns a code of {prefix}.h, 0 for success.
  int read_values(const char * text)
  {{
    return {prefix}_read_values(text, parameters.data());
  }}
'''

STANDARD = '''
  /// {meaning}
  std::array<{real}, {size}> {name}({arguments}) const
  {{
    std::array<{real}, {size}> result;
    {prefix}_{name}({calls}result.data());
    return result;
  }}
'''

EIGEN = '''
  /// {meaning}
  {matrix} {name}({arguments}) const
  {{
    {matrix} result;
    {prefix}_{name}({calls}result.data());
    return result;
  }}
'''

CLOSE_STANDARD = '''
  /// Closes the loops near the positions given; returns the largest gap that is left, m.
  {real} close_loops(Input<{n}> q, std::array<{real}, {b}> & positions) const
  {{
    return {prefix}_close_loops(q.data(), positions.data());
  }}
'''

CLOSE_EIGEN = '''
  /// Closes the loops near the positions given; returns the largest gap that is left, m.
  {real} close_loops(EigenInput<{n}> q, Vector<{b}> & positions) const
  {{
    return {prefix}_close_loops(q.data(), positions.data());
  }}
'''


def cpp_text(package: Package) -> str:
    """Return the whole header."""
    names = {'prefix': package.prefix, 'upper': package.prefix.upper(),
             'real': package.dialect.real, 'n': package.dynamics.n, 'b': package.model.n,
             'count': package.parameters, 'joints': len(package.dynamics.joint_names)}
    standard = ''.join(_method(package, function, STANDARD, 'Input') for function in
                       package.functions)
    eigen = ''.join(_method(package, function, EIGEN, 'EigenInput') for function in
                    package.functions)
    if package.loops is not None:
        standard += CLOSE_STANDARD.format(**names)
        eigen += CLOSE_EIGEN.format(**names)
    state = STATE.format(**names) if package.parametric else ''
    sizes = SIZES.format(nq=package.model.nq, n=package.model.n) if package.model.floating else ''
    return TEXT.format(**names, sizes=sizes, state=state, standard=standard, eigen=eigen)


def _method(package: Package, function: Function, template: str, kind: str) -> str:
    given = [(name, size) for name, size in function.arguments if name != 'parameters']
    calls = ''.join(f'{name}.data(), ' for name, _ in function.arguments)
    rows, columns = function.shape if len(function.shape) == 2 else (function.size, 1)
    order = ', Eigen::RowMajor' if columns > 1 else ''
    return template.format(
        prefix=package.prefix, real=package.dialect.real, size=function.size, name=function.name,
        meaning=function.meaning.replace('\n', ' '), calls=calls,
        matrix=f'Eigen::Matrix<{package.dialect.real}, {rows}, {columns}{order}>',
        arguments=', '.join(f'{kind}<{size}> {name}' for name, size in given))
