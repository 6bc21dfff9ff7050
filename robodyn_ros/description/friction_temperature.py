"""How the friction of a joint depends on its temperature."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class FrictionTemperature:
    """How the friction of a joint depends linearly on its temperature.

    Attributes
    ----------
    reference : float
        Temperature at which the joint has its stated friction, degrees Celsius.
    viscous : float
        Change of the viscous friction per kelvin, N m s/rad/K or N s/m/K.
    coulomb : float
        Change of the Coulomb friction per kelvin, N m/K or N/K.
    """

    reference: float = 20.0
    viscous: float = 0.0
    coulomb: float = 0.0


BY_TEMPERATURE = tuple(entry.name for entry in fields(FrictionTemperature))
