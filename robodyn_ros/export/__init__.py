"""The equations of motion as plain C, for controllers in which no Python runs.

`functions` chooses what is traced, `c_code` writes a traced graph as C statements, and the other
files write the header, the source, the self-test and what builds them.
"""

from robodyn_ros.export.package import export_c
from robodyn_ros.export.values import values_text

__all__ = ['export_c', 'values_text']
