"""Judges a robot description: what makes its dynamics wrong or doubtful."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from robodyn_ros.building import load_model
from robodyn_ros.check.joints import check_joint
from robodyn_ros.check.links import check_link
from robodyn_ros.check.report import CheckReport, Doubt
from robodyn_ros.check.robot import kinematic_tree_text, sample_dynamics
from robodyn_ros.dynamics import Dynamics
from robodyn_ros.model import Model

__all__ = ['CheckReport', 'Doubt', 'check_model', 'check_robot', 'mesh_folders']


def check_robot(source: str | Path, *, motors: str | Path | None = None,
                xacro_arguments: Mapping[str, str] | None = None) -> CheckReport:
    """Judge a robot description, with its meshes where they are found.

    Parameters
    ----------
    source, motors, xacro_arguments
        As `load_model` takes them.

    Raises
    ------
    RobodynError
        The description cannot be used at all.
    """
    model = load_model(source, motors=motors, xacro_arguments=xacro_arguments)
    return check_model(model, folders=mesh_folders(source))


def check_model(model: Model, *, dynamics: Dynamics | None = None,
                folders: tuple[Path, ...] | None = None, thorough: bool = True) -> CheckReport:
    """Judge a model.

    Parameters
    ----------
    model : Model
        The robot.
    dynamics : Dynamics, optional
        Its dynamics, where there are some already.
    folders : tuple of Path, optional
        Where meshes are looked for; without it no file is opened.
    thorough : bool
        Search the bounds of the mass matrix too.
    """
    doubts: list[Doubt] = []
    description = model.description
    carried = {joint.child: joint for joint in description.joints}
    links = [check_link(link, model, carried.get(link.name), folders, doubts)
             for link in description.links]
    facts, loads = sample_dynamics(model, dynamics or Dynamics(model), thorough, doubts)
    joints = [check_joint(joint, model, loads, doubts) for joint in description.joints
              if joint.type != 'fixed']
    for finding in model.findings:
        if not finding.used and not finding.reason.startswith('overridden'):
            doubts.append(Doubt('warning', finding.joint, f'{finding.quantity} '
                                f'{finding.value} from {finding.source} is ignored: '
                                f'{finding.reason}'))
    doubts.sort(key=lambda doubt: doubt.severity)
    return CheckReport(model.name, facts, links, joints, kinematic_tree_text(description), doubts)


def mesh_folders(source: str | Path) -> tuple[Path, ...]:
    """Return where the meshes of a description lie: beside its file."""
    if isinstance(source, str) and source.lstrip('\ufeff \t\r\n').startswith('<'):
        return ()
    return (Path(source).expanduser().resolve().parent,)
