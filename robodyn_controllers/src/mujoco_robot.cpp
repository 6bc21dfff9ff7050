#include "robodyn_controllers/mujoco_robot.hpp"

#include <array>
#include <stdexcept>

namespace robodyn_controllers
{

MujocoRobot::MujocoRobot(mjModel * model)
: model_(model, mj_deleteModel), data_(mj_makeData(model), mj_deleteData)
{
  mj_forward(model_.get(), data_.get());
}

MujocoRobot MujocoRobot::from_urdf(const std::string & text, double timestep)
{
  if (!(timestep > 0)) {
    throw std::runtime_error("The time step is " + std::to_string(timestep) + " s; valid: > 0");
  }
  std::array<char, 1000> error{};
  std::unique_ptr<mjSpec, void (*)(mjSpec *)> spec(
    mj_parseXMLString(text.c_str(), nullptr, error.data(), static_cast<int>(error.size())),
    mj_deleteSpec);
  if (!spec) {
    throw std::runtime_error(std::string("MuJoCo cannot read the robot description: ") +
            error.data());
  }
  // inertias come from the URDF, so that neither shapes nor the files of their meshes are needed
  for (const mjtObj type : {mjOBJ_GEOM, mjOBJ_MESH, mjOBJ_MATERIAL, mjOBJ_TEXTURE}) {
    while (mjsElement * element = mjs_firstElement(spec.get(), type)) {
      if (mjs_delete(spec.get(), element) != 0) {
        throw std::runtime_error(std::string("MuJoCo: ") + mjs_getError(spec.get()));
      }
    }
  }
  spec->option.timestep = timestep;
  spec->compiler.balanceinertia = 0;
  mjModel * model = mj_compile(spec.get(), nullptr);
  if (model == nullptr) {
    throw std::runtime_error(std::string("MuJoCo cannot compile the robot description: ") +
            mjs_getError(spec.get()));
  }
  return MujocoRobot(model);
}

MujocoRobot MujocoRobot::from_file(const std::string & path)
{
  std::array<char, 1000> error{};
  const bool binary = path.size() > 4 && path.compare(path.size() - 4, 4, ".mjb") == 0;
  mjModel * model = binary ? mj_loadModel(path.c_str(), nullptr) :
    mj_loadXML(path.c_str(), nullptr, error.data(), static_cast<int>(error.size()));
  if (model == nullptr) {
    throw std::runtime_error("MuJoCo cannot read " + path + ": " + error.data());
  }
  return MujocoRobot(model);
}

int MujocoRobot::joint(const std::string & name) const
{
  const int joint = mj_name2id(model_.get(), mjOBJ_JOINT, name.c_str());
  if (joint >= 0 &&
    (model_->jnt_type[joint] == mjJNT_HINGE || model_->jnt_type[joint] == mjJNT_SLIDE))
  {
    return joint;
  }
  std::string valid;
  for (int k = 0; k < model_->njnt; ++k) {
    const char * known = mj_id2name(model_.get(), mjOBJ_JOINT, k);
    valid += (valid.empty() ? "" : ", ") + std::string(known == nullptr ? "(no name)" : known);
  }
  throw std::runtime_error("The simulated robot has no revolute or prismatic joint '" + name +
          "'; its joints: " + valid);
}

void MujocoRobot::set_position(int joint, double position) noexcept
{
  data_->qpos[model_->jnt_qposadr[joint]] = position;
  data_->qvel[model_->jnt_dofadr[joint]] = 0.0;
  mj_forward(model_.get(), data_.get());
}

void MujocoRobot::set_effort(int joint, double effort) noexcept
{
  data_->qfrc_applied[model_->jnt_dofadr[joint]] = effort;
}

void MujocoRobot::set_armature(int joint, double armature) noexcept
{
  model_->dof_armature[model_->jnt_dofadr[joint]] = armature;
  mj_forward(model_.get(), data_.get());
}

void MujocoRobot::step(int count) noexcept
{
  for (int k = 0; k < count; ++k) {
    mj_step(model_.get(), data_.get());
  }
}

}  // namespace robodyn_controllers
