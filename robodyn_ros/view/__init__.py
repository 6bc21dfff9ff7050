"""A robot in the browser: its geometry, its inertials, and its torques (viser)."""

from robodyn_ros.view.live import ExperimentPage
from robodyn_ros.view.playback import MotionLimits, Playback
from robodyn_ros.view.scene import RobotScene
from robodyn_ros.view.server import PORT, opened
from robodyn_ros.view.viewer import Viewer, serve

__all__ = ['PORT', 'ExperimentPage', 'MotionLimits', 'Playback', 'RobotScene', 'Viewer',
           'opened', 'serve']
