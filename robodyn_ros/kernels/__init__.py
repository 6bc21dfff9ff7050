"""Compiles traced functions: straight-line machine code without Python's overhead.

``expression`` records a NumPy function as a graph, ``llvm_ir`` writes the graph as a loop over
samples, ``compiler`` turns it into machine code and caches this on disk, ``kernel`` makes it
callable from Python, ``continuation`` adds a search by Newton's method, and ``derivatives``
differentiates traced functions. This package is independent of robots.
"""

from robodyn_ros.kernels.continuation import ContinuationKernel, PathRules
from robodyn_ros.kernels.derivatives import pullback
from robodyn_ros.kernels.expression import sign, smooth_sign
from robodyn_ros.kernels.kernel import Kernel, KernelSpec

__all__ = ['ContinuationKernel', 'Kernel', 'KernelSpec', 'PathRules', 'pullback', 'sign',
           'smooth_sign']
