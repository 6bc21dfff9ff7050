// A robot simulated by MuJoCo's C library, without ROS.
#ifndef ROBODYN_CONTROLLERS__MUJOCO_ROBOT_HPP_
#define ROBODYN_CONTROLLERS__MUJOCO_ROBOT_HPP_

#include <mujoco/mujoco.h>

#include <memory>
#include <string>
#include <vector>

namespace robodyn_controllers
{

/// A simulated robot, whose joints are moved by efforts. Positions are in rad or m, efforts in N m
/// or N.
class MujocoRobot
{
public:
  /// Reads a robot from the text of a URDF; meshes are not needed, and there are no contacts.
  ///
  /// @throws std::runtime_error if MuJoCo cannot read it.
  static MujocoRobot from_urdf(const std::string & text, double timestep);

  /// Reads a world from a file, MJCF or MJB; its time step is kept.
  ///
  /// @throws std::runtime_error if MuJoCo cannot read it.
  static MujocoRobot from_file(const std::string & path);

  /// Index of a joint for the functions below. @throws std::runtime_error if there is none.
  int joint(const std::string & name) const;

  double timestep() const noexcept {return model_->opt.timestep;}  ///< s
  double position(int joint) const noexcept {return data_->qpos[model_->jnt_qposadr[joint]];}
  double velocity(int joint) const noexcept {return data_->qvel[model_->jnt_dofadr[joint]];}
  double effort(int joint) const noexcept {return data_->qfrc_applied[model_->jnt_dofadr[joint]];}

  /// Puts a joint at a position, at rest.
  void set_position(int joint, double position) noexcept;
  void set_effort(int joint, double effort) noexcept;
  /// Adds the inertia of a motor, reflected to its joint, kg m^2 or kg.
  void set_armature(int joint, double armature) noexcept;
  void step(int count = 1) noexcept;

private:
  explicit MujocoRobot(mjModel * model);

  std::unique_ptr<mjModel, void (*)(mjModel *)> model_;
  std::unique_ptr<mjData, void (*)(mjData *)> data_;
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__MUJOCO_ROBOT_HPP_
