"""Springs and counterbalances at joints."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class SpringTorque:
    """A spring or a counterbalance at one joint: ``linear q + sine sin(q) + cosine cos(q)``.

    This is the torque that the motor must give to hold the spring at the joint's position q; a
    constant torque belongs to the offset of the friction.

    Attributes
    ----------
    linear : float
        Stiffness of a spring that the joint twists or stretches, N m/rad or N/m.
    sine, cosine : float
        Torques of a long spring at a crank, N m or N.
    """

    linear: float = 0.0
    sine: float = 0.0
    cosine: float = 0.0


SPRING_PARAMETERS = tuple(entry.name for entry in fields(SpringTorque))
