"""How the loops of a robot are closed: rules of the search for the dependent joints.

The independent joints move in small steps from a known pose to the given positions, and Newton's
method closes the gaps between the points that the cuts hold together, so that the mechanism stays
in the same assembly mode.
"""

from __future__ import annotations

from robodyn_ros.kernels import PathRules

SINGULAR = 1e-6  # smallest sine between the motions of the gaps by the dependent joints
ROUGH = 1e-9  # m, gap that is accepted if round-off prevents further convergence
FARTHEST = 1e3  # rad or m from the start; joint positions farther away are mistakes
RULES = PathRules(
    step=0.1,  # rad or m, step of an independent joint between two solutions
    farthest=FARTHEST,
    iterations=30,  # of Newton's method, which needs 3 to 5 if the loops close
    largest=0.5,  # rad or m, change of a dependent joint in one iteration
    passing=1e-3,  # rad or m
    exact=1e-16,  # rad or m: half a unit in the last place of 1
    closed=1e-14,  # m: a few units in the last place of 1 m
    rough=ROUGH,
    singular=SINGULAR**2)
