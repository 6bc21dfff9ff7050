"""`export_c`: writes a folder with a robot's equations as C, their self-test and build files."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from robodyn_ros.dynamics import RobotDynamics, dynamics_of
from robodyn_ros.dynamics.loops import Loops
from robodyn_ros.errors import OutputError, UnknownNameError
from robodyn_ros.export.c_code import Dialect
from robodyn_ros.export.functions import (
    DEFAULT_TERMS,
    Function,
    c_name,
    exported_functions,
    link_names,
)
from robodyn_ros.keywords import checked_keywords
from robodyn_ros.model import Model

UNDECLARED = 'TODO: License declaration'  # as `ros2 pkg create` writes it


@dataclass(frozen=True, eq=False)
class Package:
    """The data from which all files of an export are written.

    Attributes
    ----------
    dynamics : RobotDynamics
        The robot.
    functions : list of Function
        The exported functions.
    dialect : Dialect
        Notation of numbers and names.
    parametric : bool
        Whether the standard parameters are an argument.
    origin : str
        Origin of identified parameters; may be empty.
    licence : str
        Licence of the package, for package.xml.
    """

    dynamics: RobotDynamics
    functions: list[Function]
    dialect: Dialect
    parametric: bool
    origin: str
    licence: str

    @property
    def model(self) -> Model:
        """The robot, with its loops cut open."""
        return self.dynamics.model

    @property
    def prefix(self) -> str:
        """Prefix of all names."""
        return self.dialect.prefix

    @property
    def name(self) -> str:
        """Name of the CMake and ROS package."""
        return f'{self.prefix}_dynamics'

    @property
    def loops(self) -> RobotDynamics | None:
        """The robot if it has closed loops, else None."""
        return self.dynamics if self.dynamics.cuts else None

    @property
    def parameters(self) -> int:
        """Number of standard parameters."""
        return len(self.model.parameter_names)

    @property
    def payload_links(self) -> dict[str, str]:
        """The moving links, to which a payload can be fixed, by their names in C."""
        return {name: link for link, name in link_names(self.model).items()
                if self.model.floating or self.model.link_frames[link].body >= 0}

    def signature(self, function: Function) -> str:
        """Return the declaration of a function in C, without the semicolon."""
        real = self.dialect.real
        arguments = [f'const {real} {name}[{size}]' for name, size in function.arguments]
        return (f'void {self.prefix}_{function.name}({", ".join(arguments)}, '
                f'{real} result[{function.size}])')


@checked_keywords
def export_c(robot: Model | RobotDynamics, folder: str | Path, *,
             terms: Sequence[str] = DEFAULT_TERMS, prefix: str | None = None,
             single: bool = False, own_sincos: bool = False, parametric: bool = False,
             loops: Loops | str | Path | Mapping[str, object] | None = None,
             friction_width: float | None = None, origin: str = '',
             license: str = UNDECLARED) -> list[Path]:
    """Write a robot's equations of motion as plain C (valid C99 and C++17).

    The functions keep no state, allocate no memory, have no branches that depend on their
    arguments, and use only sin, cos and sqrt of the C library.

    Parameters
    ----------
    robot : Model or RobotDynamics
        The robot; its base may float.
    folder : str or Path
        The folder; it is created if it does not exist, and files of the same names are replaced.
    terms : sequence of str
        ``gravity``, ``coriolis``, ``friction``, ``mass_matrix``, ``inverse_dynamics``,
        ``forward_dynamics``, ``coriolis_matrix``, ``center_of_mass``, ``centroidal_momentum``,
        ``regressor``, ``observer``, ``pose:LINK``, ``jacobian:LINK``.
    prefix : str, optional
        Prefix of all names; default: the robot's name.
    single : bool
        Whether to use 32-bit instead of 64-bit numbers.
    own_sincos : bool
        Whether to use polynomials for sine and cosine instead of the C library's functions.
    parametric : bool
        Whether the standard parameters (masses, inertias, friction) are an argument, so that they
        can be replaced and payloads added at run time.
    loops : Loops, str, Path or mapping, optional
        Definition of closed loops if ``robot`` is a model, see `read_loops`.
    friction_width : float, optional
        See `Dynamics`, rad/s or m/s; used only if ``robot`` is a model.
    origin : str
        Origin of identified parameters, which is written into the header.
    license : str
        Licence of the package, for its package.xml, for example ``Apache-2.0``. The default is
        the one that ``ros2 pkg create`` writes, for you to replace.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    UnknownNameError
        A term or a link does not exist, or the prefix is not valid in C.
    OutputError
        The files cannot be written.
    """
    dynamics = dynamics_of(robot, loops, friction_width=friction_width)
    name = c_name(dynamics.model.name) if prefix is None else prefix
    if name != c_name(name):
        raise UnknownNameError('prefix', name, (c_name(name),))
    package = Package(dynamics, exported_functions(dynamics, terms, parametric=parametric),
                      Dialect(name, single, own_sincos), parametric, origin, license)
    return _write(Path(folder), {name: text(package) for name, text in _files(package).items()})


def _files(package: Package) -> dict[str, Callable[[Package], str]]:
    """Return which function writes each file."""
    from robodyn_ros.export import build_files, cpp_class, header, plugin, self_test, source

    prefix = package.prefix
    loaded_at_run_time = {
        f'{prefix}_plugin.c': plugin.plugin_text,
        plugin.HEADER: plugin.plugin_header} if plugin.has_plugin(package) else {}
    return {f'{prefix}.h': header.header_text, f'{prefix}.c': source.source_text,
            f'{prefix}.hpp': cpp_class.cpp_text, 'self_test.c': self_test.self_test_text,
            'CMakeLists.txt': build_files.cmake_text, 'package.xml': build_files.package_xml,
            'README.md': build_files.readme_text, **loaded_at_run_time}


def _write(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write all files, or none if this fails or is interrupted."""
    fresh = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix='.export', dir=folder.parent))
        for name, text in texts.items():
            (fresh / name).write_text(text, encoding='utf-8')
        folder.mkdir(exist_ok=True)
        return [(fresh / name).replace(folder / name) for name in texts]
    except OSError as error:
        raise OutputError(f'it cannot be written: {error.strerror or error}',
                          path=folder) from None
    finally:
        if fresh is not None:
            shutil.rmtree(fresh, ignore_errors=True)
