"""Checks a robot description for errors that make its dynamics wrong or doubtful."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from robodyn_ros.check.formulations import Formulations, compare_formulations
from robodyn_ros.check.joints import check_joint
from robodyn_ros.check.links import check_link
from robodyn_ros.check.report import CheckReport, Issue
from robodyn_ros.check.robot import kinematic_tree_text, sample_dynamics
from robodyn_ros.description.robot import Finding
from robodyn_ros.description.urdf import is_text
from robodyn_ros.dynamics import Dynamics
from robodyn_ros.errors import DescriptionError
from robodyn_ros.model import Model, load_model

__all__ = ['CheckReport', 'Formulations', 'Issue', 'check_model', 'check_robot',
           'compare_formulations', 'mesh_folders']


def check_robot(source: str | Path, *, motors: str | Path | None = None,
                xacro_arguments: Mapping[str, str] | None = None,
                trust_xacro: bool = False) -> CheckReport:
    """Check a robot description, including the meshes that can be found.

    Parameters
    ----------
    source, motors, xacro_arguments, trust_xacro
        As in `load_model`.

    Raises
    ------
    RobodynError
        The description cannot be used at all.
    """
    model = load_model(source, motors=motors, xacro_arguments=xacro_arguments,
                       trust_xacro=trust_xacro)
    return check_model(model, folders=mesh_folders(source))


def check_model(model: Model, *, dynamics: Dynamics | None = None,
                folders: tuple[Path, ...] | None = None, thorough: bool = True) -> CheckReport:
    """Check a model.

    Parameters
    ----------
    model : Model
        The robot.
    dynamics : Dynamics, optional
        Its dynamics, if they exist already.
    folders : tuple of Path, optional
        Folders that are searched for meshes; without folders, no file is opened.
    thorough : bool
        Whether to search for the bounds of the mass matrix, and to compute the reach.

    Raises
    ------
    DescriptionError
        The robot has no joint.
    """
    if not model.joint_names:
        raise DescriptionError('has no joint that moves, so there is nothing to check',
                               valid='a robot with joints')
    if model.floating:  # only links and joints are checked, so the base may be fixed
        model, dynamics = model.with_fixed_base(), None
    issues: list[Issue] = []
    description = model.description
    carried = {joint.child: joint for joint in description.joints}
    links = [check_link(link, model, carried.get(link.name), folders, issues)
             for link in description.links]
    facts, loads = sample_dynamics(model, dynamics or Dynamics(model), thorough, issues)
    joints = [check_joint(joint, model, loads, issues) for joint in description.joints
              if joint.type != 'fixed']
    for finding in model.findings:
        if not finding.used and not _harmless(finding):
            issues.append(Issue('warning', finding.joint, f'{finding.quantity} '
                                f'{finding.value} from {finding.source} is ignored: '
                                f'{finding.reason}'))
    issues.sort(key=lambda issue: issue.severity)
    return CheckReport(model.name, facts, links, joints, kinematic_tree_text(description), issues)


def _harmless(finding: Finding) -> bool:
    """Return whether it is harmless to ignore a value."""
    if finding.reason.startswith('overridden'):
        return True
    # exporters write a ratio of 1 for joints that are not in the model, such as those of wheels
    return finding.quantity == 'gear_ratio' and finding.value == 1.0


def mesh_folders(source: str | Path) -> tuple[Path, ...]:
    """Return the folders that are searched for the meshes of a description: that of its file."""
    if is_text(source):
        return ()
    return (Path(source).expanduser().resolve().parent,)
