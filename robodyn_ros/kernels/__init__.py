"""Functions traced once and compiled: a recursion's arithmetic for one robot, without its loops.

``expression`` records a NumPy function as a graph, ``llvm_ir`` writes the graph as a loop over
samples, ``compiler`` turns that into machine code and keeps it on disk, ``kernel`` lets Python
call it; ``derivatives`` differentiates traced functions. Nothing here knows of robots.
"""

from robodyn_ros.kernels.derivatives import pullback
from robodyn_ros.kernels.expression import sign, smooth_sign
from robodyn_ros.kernels.kernel import Kernel, KernelSpec

__all__ = ['Kernel', 'KernelSpec', 'pullback', 'sign', 'smooth_sign']
