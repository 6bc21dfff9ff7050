"""What a goal of the identification asks for, and what its result says."""

from __future__ import annotations

import shlex
from pathlib import Path

from robodyn_interfaces.action import IdentifyDynamics
from robodyn_ros.errors import IdentificationError
from robodyn_ros.excitation import Limits, Plan
from robodyn_ros.identification import Settings
from robodyn_ros.identification.runs import PROOF, RECORDING
from robodyn_ros.model import Model
from robodyn_ros.report.results import URDF, Outcome

Goal = IdentifyDynamics.Goal


def settings_of(goal: Goal) -> Settings:
    """Return what a goal wants of the estimation."""
    return Settings(kind=goal.kind or 'lumped', friction=goal.friction or 'auto',
                    joints=list(goal.joints) or None, payload=goal.payload_link or None,
                    payload_mass=goal.payload_mass or None, slow=goal.slow or None,
                    guard=goal.guard or None)


def command_of(goal: Goal, folder: Path) -> str:
    """Return the command that does the estimation again, offline."""
    logs = [str(folder / RECORDING)] if goal.source != Goal.USE_LOGS else list(goal.logs)
    words = ['robodyn', 'identify', *logs, '--urdf', 'ROBOT.urdf', '--kind', goal.kind,
             '--friction', goal.friction]
    if goal.source == Goal.EXCITE and not goal.validation_logs:
        words += ['--validate', str(folder / PROOF)]
    elif goal.validation_logs:
        words += ['--validate', *goal.validation_logs]
    else:
        words += ['--share', f'{1 - (goal.validation_share or 0.3):g}']
    return shlex.join(words)


def search_of(goal: Goal, model: Model) -> tuple[Limits, Plan]:
    """Return limits and plan of the search for an excitation."""
    speed = goal.speed or 0.8
    if not 0 < speed <= 1:
        raise IdentificationError(f'speed is {speed}; valid: above 0, at most 1')
    limits = Limits(velocity=model.velocity_limit * speed, floor=None,
                    torque_margin=goal.torque_margin or 0.1,
                    self_collision=goal.self_collision)
    kind = goal.kind if goal.kind in ('rigid', 'lumped', 'model1') else 'model1'
    plan = Plan(kind=kind, period=goal.period or None, periods=goal.periods or 1,
                resonance=goal.resonance or None, budget=goal.search_time or 20.0)
    return limits, plan


def fill(result: IdentifyDynamics.Result, outcome: Outcome) -> None:
    """Say in a result what was found."""
    found, proof = outcome.result, outcome.proof
    base, u = found.base_, found.uncertainty_
    result.verdict, result.reasons = proof.verdict, list(proof.reasons)
    result.notes = list(found.notes)
    result.base_parameter = list(base.names)
    result.value = found.estimate_.values.tolist()
    result.standard_deviation = u.deviation.tolist()
    result.nominal = (base.matrix @ found.linear.nominal()).tolist()
    result.significant = [name in found.significant_ for name in base.names]
    result.condition = float(u.condition)
    result.joint = list(proof.joint_names)
    result.identification_error = found.training_.relative_error.tolist()
    result.validation_error = proof.relative_error.tolist()
    result.validation_error_filtered = proof.relative_error_filtered.tolist()
    result.validation_error_nominal = proof.nominal.tolist()
    result.durbin_watson = u.durbin_watson.tolist()
    result.physically_consistent = any(path.name == URDF for path in outcome.files)
    result.inconsistent_bodies = list(found.inconsistent_bodies_)
