"""A robot in the browser: its geometry, its inertials, and its torques (viser)."""

from robodyn_ros.view.scene import RobotScene
from robodyn_ros.view.viewer import Viewer, serve

__all__ = ['RobotScene', 'Viewer', 'serve']
