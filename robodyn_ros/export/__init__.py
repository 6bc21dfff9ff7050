"""Exports the equations of motion: as plain C, or as closed forms to read.

C is for controllers without Python: `functions` selects the functions to trace, `c_code` writes a
traced graph as C statements, `package` adds the header, the source, the self-test and the build
files. Closed forms are in `symbolic`, the recursion symbol by symbol in `recursive`.
"""

from robodyn_ros.export.package import export_c
from robodyn_ros.export.values import values_text

__all__ = ['export_c', 'values_text']
