"""Forces and moments through the joints and on the mounting, and wrenches from outside."""

from __future__ import annotations

from collections.abc import ItemsView, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.dynamics.base_motion import BaseMotion
from robodyn_ros.dynamics.link_functions import LinkFunctions
from robodyn_ros.errors import UnknownNameError, check_type
from robodyn_ros.kernels.kernel import check_array
from robodyn_ros.spatial import Array

Wrenches = Mapping[str, ArrayLike]  # by link: force and moment about its origin, root axes


def wrenches_by_link(f_ext: Wrenches) -> ItemsView[str, ArrayLike]:
    """Return links and wrenches; raise an error for anything but a mapping."""
    check_type('f_ext', f_ext, Mapping, 'a mapping of links to wrenches, for example '
               "{'tool': [0, 0, -10, 0, 0, 0]}")
    return f_ext.items()


class Reactions(LinkFunctions):
    """The part of `Dynamics` for reactions and external wrenches."""

    @property
    def wrench_joints(self) -> tuple[str, ...]:
        """Order of `joint_wrenches`: ``model.joint_names``, then the mimic joints."""
        mimics = [name for name in self.model.body_joints if name not in self.model.joint_names]
        return (*self.model.joint_names, *mimics)

    def joint_wrenches(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike,
                       frame: str = 'joint', *, f_ext: Wrenches | None = None,
                       base_motion: BaseMotion | None = None) -> Array:
        """Force (N) and moment (N m) through every joint, on the child link at the joint's origin.

        Parameters
        ----------
        q, qd, qdd : array-like, shape (n,) or (N, n)
            Motion.
        frame : {'joint', 'root'}
            Axes of the result: those of the joint's child link, or those of the root.
        f_ext : mapping of str to array-like, optional
            Wrenches that the environment exerts on links, see `inverse_dynamics`.
        base_motion : BaseMotion, optional
            Motion of the base; default: at rest.

        Returns
        -------
        ndarray, shape (b, 6) or (N, b, 6)
            A row for each of `wrench_joints`.

        Raises
        ------
        UnknownNameError
            There is no such frame, or no link of a wrench.
        ShapeError
            An array has the wrong shape.
        """
        if frame not in ('joint', 'root'):
            raise UnknownNameError('frame', frame, ('joint', 'root'))
        wrenches = self._wrenches(q, qd, qdd, f_ext, base_motion)
        links = {joint.name: joint.child for joint in self.model.description.joints}
        rows = []
        for name in self.wrench_joints:
            wrench = wrenches[..., self.model.body_joints.index(name), :]
            if frame == 'root':
                rotation = self.pose(q, links[name])[..., :3, :3]
                wrench = np.concatenate([np.einsum('...ij,...j->...i', rotation, part)
                                         for part in (wrench[..., :3], wrench[..., 3:])], axis=-1)
            rows.append(wrench)
        return np.stack(rows, axis=-2)

    def base_wrench(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *,
                    f_ext: Wrenches | None = None, base_motion: BaseMotion | None = None,
                    near: ArrayLike | None = None) -> Array:
        """Force (N) and moment (N m) that the robot exerts on its mounting, shape (6,) or (N, 6).

        It is given in the root frame, about its origin, and includes the weight of the root link;
        for a floating base, it is given in the axes of the root link. Kolyubin 1.3 calls it the
        shaking force and moment. ``f_ext`` and ``base_motion`` are those of `inverse_dynamics`;
        ``near`` has an effect only on robots with closed loops.
        """
        return -self._wrenches(q, qd, qdd, f_ext, base_motion)[..., -1, :]

    def _wrenches(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, f_ext: Wrenches | None,
                  base_motion: BaseMotion | None) -> Array:
        """Wrenches through the joints of all bodies, then that of the mounting on the root."""
        if base_motion is None:
            wrenches = self.kernel('wrenches').single(q, qd, qdd)
        else:
            wrenches = self.kernel('moving_wrenches').single(
                q, qd, qdd, base_motion.values(self.model))
        return wrenches if f_ext is None else wrenches - self._carried(q, f_ext)

    def _carried(self, q: ArrayLike, f_ext: Wrenches) -> Array:
        """Sum of the external wrenches beyond each joint, in the frame of its body; root last."""
        poses = self.kernel('body_poses').single(q)
        loads: list[Any] = [np.zeros(6) for _ in range(poses.shape[-3])]
        for link, values in wrenches_by_link(f_ext):
            frame = self.model.link_frame(link)
            wrench = check_array(values, 6, f'f_ext[{link!r}]')
            own = poses[..., frame.body, :, :]
            point = own[..., 3] + own[..., :3] @ frame.translation
            for body in (*self.catalogue.tree.ancestors(frame.body), -1):
                turn, origin = poses[..., body, :, :3], poses[..., body, :, 3]
                force = wrench[..., :3]
                moment = wrench[..., 3:] + np.cross(point - origin, force)
                loads[body] = loads[body] + np.concatenate(np.broadcast_arrays(*(
                    np.einsum('...ji,...j->...i', turn, part) for part in (force, moment))),
                    axis=-1)
            valid = np.isfinite(wrench).all(axis=-1, keepdims=True)
            loads = [load + np.where(valid, 0.0, np.nan) for load in loads]  # also of other joints
        return np.stack(np.broadcast_arrays(*loads), axis=-2)

    def _external(self, q: ArrayLike, f_ext: Wrenches) -> Array:
        """Generalised forces ``sum J' F`` of external wrenches."""
        total: Any = 0.0
        for link, wrench in wrenches_by_link(f_ext):
            forces = check_array(wrench, 6, f'f_ext[{link!r}]')
            total = total + np.einsum('...ij,...i->...j', self.jacobian(q, link), forces)
        return np.asarray(total, np.float64)
