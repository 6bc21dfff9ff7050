"""Optional Python packages, which only parts of robodyn_ros need and import when used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from robodyn_ros.errors import MissingPackageError

# package -> the extra of robodyn_ros that installs it (setup.py)
EXTRAS = {
    'clarabel': 'identify',
    'distributed': 'fleet',
    'duckdb': 'fleet',
    'fsspec': 'fleet',
    'h5py': 'formats',
    'jinja2': 'identify',
    'matplotlib': 'identify',
    'mujoco': 'sim',
    'pandas': 'notebook',
    'plotly': 'identify',
    'pyarrow': 'formats',
    'rich': 'demo',
    'rosbags': 'identify',
    'scipy': 'identify',
    'sklearn': 'residual',
    'sympy': 'equations',
    'threadpoolctl': 'identify',
    'trimesh': 'meshes',
    'viser': 'view',
}

NAMES = {'sklearn': 'scikit-learn'}  # of distributions that differ from those of their modules


def package(module: str) -> Any:
    """Import a module of a package that may be missing, and return it.

    Parameters
    ----------
    module : str
        For example ``rosbags.rosbag2``.

    Raises
    ------
    MissingPackageError
        The package is not installed. The message says how to install it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition('.')[0]
        if name in EXTRAS:
            raise MissingPackageError(NAMES.get(name, name), EXTRAS[name]) from error
        raise explained(error) from None


def explained(error: ImportError) -> ImportError:
    """Return an import error, as a `MissingPackageError` if the package is one of `EXTRAS`."""
    name = (error.name or '').partition('.')[0]
    return MissingPackageError(NAMES.get(name, name), EXTRAS[name]) if name in EXTRAS else error
