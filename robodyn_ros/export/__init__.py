"""Exports the equations of motion as plain C, for controllers without Python.

`functions` selects the functions to trace, `c_code` writes a traced graph as C statements, and the
other files write the header, the source, the self-test and the build files.
"""

from robodyn_ros.export.package import export_c
from robodyn_ros.export.values import values_text

__all__ = ['export_c', 'values_text']
