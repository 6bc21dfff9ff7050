"""`EnergyOutput`: the balance of energy of a running robot as a message."""

from __future__ import annotations

from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from robodyn_ros.dynamics import RobotDynamics
from robodyn_ros.observation.energy import EnergyBalance, EnergyMonitor
from robodyn_ros.spatial import Array


class EnergyOutput:
    """The balance of energy of one model, as a message and as values for /diagnostics.

    Parameters
    ----------
    dynamics : RobotDynamics
        The robot.
    """

    def __init__(self, dynamics: RobotDynamics):
        self._dynamics = dynamics
        self.monitor: EnergyMonitor | None = None
        self._balance: EnergyBalance | None = None

    def watch(self, window: float) -> None:
        """Begin to balance the energy over a time, s; 0 ends it."""
        if window:
            self._dynamics.warm_up('energy')
        self._balance = None
        self.monitor = EnergyMonitor(self._dynamics, window) if window else None

    def update(self, t: float, q: Array, qd: Array, torque: Array, near: Array | None) -> None:
        """Add a state; see `EnergyMonitor.update`."""
        monitor = self.monitor  # a parameter may end it meanwhile
        if monitor is not None:
            self._balance = monitor.update(t, q, qd, torque, near=near)

    def message(self) -> Float64MultiArray:
        """Return the fields of `EnergyBalance`, in their order, which the label names."""
        message = Float64MultiArray(data=list(map(float, self._balance or ())))
        size, label = len(message.data), ', '.join(EnergyBalance._fields)
        message.layout.dim = [MultiArrayDimension(label=label, size=size, stride=size)]
        return message

    def values(self) -> dict[str, str]:
        """Return the balance with units; nothing if there is none."""
        balance = self._balance
        if balance is None:
            return {}
        return {
            'kinetic_energy': f'{balance.kinetic:.4g} J',
            'potential_energy': f'{balance.potential:.4g} J',
            'supplied_power': f'{balance.supplied:.4g} W',
            'dissipated_power': f'{balance.dissipated:.4g} W',
            'unexplained_power': f'{balance.unexplained:.4g} W',
            'energy_balance': 'passive' if balance.passive else
            'not passive: the energy rises by more than the work of the measured torques'}
