"""Writes the build files of the exported code: CMakeLists.txt, package.xml and README.md."""

from __future__ import annotations

from xml.sax.saxutils import escape

from robodyn_ros.export.header import facts, joint_lines
from robodyn_ros.export.package import Package
from robodyn_ros.export.plugin import has_plugin

CMAKE = '''# Builds the library {name}: with ament where ROS 2 is sourced, else with CMake alone.
cmake_minimum_required(VERSION 3.16)
project({name} VERSION 1.0.0 LANGUAGES C)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
option({upper}_NATIVE "Use all instructions of the processor that compiles this" OFF)
include(GNUInstallDirs)
include(CTest)
find_package(ament_cmake QUIET)

add_library({name} {prefix}.c)
add_library({name}::{name} ALIAS {name})
set_target_properties({name} PROPERTIES POSITION_INDEPENDENT_CODE ON C_EXTENSIONS OFF)
target_compile_features({name} PUBLIC c_std_99)
if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
  # products and sums may become one instruction, and square roots need no errno
  target_compile_options({name} PRIVATE -ffp-contract=fast -fno-math-errno)
  if({upper}_NATIVE)
    target_compile_options({name} PRIVATE -march=native)
  endif()
endif()
target_include_directories({name} PUBLIC
  $<BUILD_INTERFACE:${{CMAKE_CURRENT_SOURCE_DIR}}>
  $<INSTALL_INTERFACE:${{CMAKE_INSTALL_INCLUDEDIR}}/{name}>)
if(UNIX)
  target_link_libraries({name} PUBLIC m)
endif()

{plugin}install(FILES {prefix}.h {prefix}.hpp DESTINATION ${{CMAKE_INSTALL_INCLUDEDIR}}/{name})
install(TARGETS {name} EXPORT {name}Targets
  ARCHIVE DESTINATION ${{CMAKE_INSTALL_LIBDIR}}
  LIBRARY DESTINATION ${{CMAKE_INSTALL_LIBDIR}}
  RUNTIME DESTINATION ${{CMAKE_INSTALL_BINDIR}})

if(BUILD_TESTING)
  add_executable({prefix}_self_test self_test.c)
  target_link_libraries({prefix}_self_test PRIVATE {name})
  add_test(NAME {prefix}_self_test COMMAND {prefix}_self_test)
endif()

if(ament_cmake_FOUND)
  ament_export_targets({name}Targets HAS_LIBRARY_TARGET)
  install(EXPORT {name}Targets NAMESPACE {name}:: DESTINATION share/${{PROJECT_NAME}}/cmake)
  ament_package()
else()
  # the file that defines the target is all that find_package needs
  install(EXPORT {name}Targets FILE {name}Config.cmake NAMESPACE {name}::
    DESTINATION ${{CMAKE_INSTALL_LIBDIR}}/cmake/{name})
  include(CMakePackageConfigHelpers)
  write_basic_package_version_file({name}ConfigVersion.cmake COMPATIBILITY SameMajorVersion)
  install(FILES ${{CMAKE_CURRENT_BINARY_DIR}}/{name}ConfigVersion.cmake
    DESTINATION ${{CMAKE_INSTALL_LIBDIR}}/cmake/{name})
endif()
'''

PLUGIN = '''# loaded at run time, for example by the controller of robodyn_controllers
add_library({name}_plugin MODULE {prefix}_plugin.c)
set_target_properties({name}_plugin PROPERTIES C_EXTENSIONS OFF)
target_link_libraries({name}_plugin PRIVATE {name})
install(TARGETS {name}_plugin LIBRARY DESTINATION ${{CMAKE_INSTALL_LIBDIR}})

'''

PACKAGE_XML = '''<?xml version="1.0"?>
<?xml-model href="http://download.ros.org/schema/package_format3.xsd"
  schematypens="http://www.w3.org/2001/XMLSchema"?>
<package format="3">
  <name>{name}</name>
  <version>1.0.0</version>
  <description>Equations of motion of {robot} as C functions, written by robodyn_ros.</description>
  <maintainer email="user@todo.todo">user</maintainer>
  <license>{licence}</license>
  <buildtool_depend>ament_cmake</buildtool_depend>
  <export>
    <build_type>ament_cmake</build_type>
  </export>
</package>
'''

README = '''# Equations of motion of {robot}

Plain C (C99 and C++17) without dependencies. The functions do not allocate memory, keep no state
between calls, and have no branches that depend on their arguments, so each call takes the same
time.

{facts}

| joint | name | units |
|---|---|---|
{joints}

## Functions

{functions}

[{prefix}.h]({prefix}.h) describes the arguments and their units. [{prefix}.hpp]({prefix}.hpp) has
the same functions as C++ classes, for `std::array` (`std::span` with C++20) and for Eigen's types.

## Building

With a compiler only, including the self-test:

```bash
cc -O3 -march=native -ffp-contract=fast -fno-math-errno -c {prefix}.c
cc {prefix}.o self_test.c -lm -o self_test && ./self_test
```

With CMake (`-D{upper}_NATIVE=ON` uses all instructions of your processor):

```bash
cmake -S . -B build && cmake --build build && ctest --test-dir build
cmake --install build --prefix ~/robot
```

As a ROS 2 package: put this folder into a workspace and run `colcon build`. In both cases another
package uses it with

```cmake
find_package({name} REQUIRED)
target_link_libraries(my_controller PRIVATE {name}::{name})
```
'''


def cmake_text(package: Package) -> str:
    """Return CMakeLists.txt."""
    names = {'name': package.name, 'prefix': package.prefix, 'upper': package.prefix.upper()}
    return CMAKE.format(**names, plugin=PLUGIN.format(**names) if has_plugin(package) else '')


def package_xml(package: Package) -> str:
    """Return package.xml, in which the user must fill in the maintainer."""
    return PACKAGE_XML.format(name=package.name, robot=escape(package.model.name),
                              licence=escape(package.licence))


def readme_text(package: Package) -> str:
    """Return README.md."""
    rows = [line.split(maxsplit=1) for line in joint_lines(package)]
    joints = [f'| {number} | {rest.rsplit("  ", 1)[0]} | {rest.rsplit("  ", 1)[1]} |'
              for number, rest in rows]
    functions = [f'- `{package.prefix}_{function.name}`: {function.meaning}'
                 for function in package.functions]
    return README.format(
        robot=package.model.name, prefix=package.prefix, upper=package.prefix.upper(),
        name=package.name, facts='\n'.join(f'- {heading}: {text}' for heading, text in
                                           facts(package)),
        joints='\n'.join(joints), functions='\n'.join(functions))
