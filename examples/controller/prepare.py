"""Exports a robot's equations of motion as C, and the same robot for MuJoCo's C API."""

import sys
from pathlib import Path

import mujoco

import robodyn_ros as rd

folder = Path(sys.argv[1])
model = rd.load_model(Path(__file__).parents[2] / 'urdf/kuka_lwr4.urdf.xacro')
rd.export_c(model, folder, prefix='lwr4', own_sincos=True,
            terms=('gravity', 'inverse_dynamics'))

spec = mujoco.MjSpec.from_string(model.description.urdf)
spec.option.timestep = 0.001
spec.option.gravity = model.gravity
spec.compiler.balanceinertia = False
spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT  # the links' shapes overlap
mujoco.mj_saveModel(spec.compile(), str(folder / 'robot.mjb'), None)
(folder / 'mujoco.txt').write_text(str(Path(mujoco.__file__).parent))
print(f'{folder}: equations of {model.name} and robot.mjb')
