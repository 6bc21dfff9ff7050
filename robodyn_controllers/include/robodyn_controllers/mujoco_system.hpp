// A ros2_control system whose hardware is a robot simulated by MuJoCo.
#ifndef ROBODYN_CONTROLLERS__MUJOCO_SYSTEM_HPP_
#define ROBODYN_CONTROLLERS__MUJOCO_SYSTEM_HPP_

#include <memory>
#include <vector>

#include "hardware_interface/system_interface.hpp"
#include "robodyn_controllers/mujoco_robot.hpp"

namespace robodyn_controllers
{

/// Steps the simulation once a cycle by the period of the controller manager. The robot is held by
/// its brakes until a controller commands an effort for each joint.
///
/// Command interface of a joint: effort. State interfaces: position (with initial_value), velocity,
/// effort. Parameters of the hardware: `model`, an MJCF or MJB file, instead of the robot
/// description itself; `timestep`, s. Parameter of a joint: `armature`, kg m^2 or kg.
class MujocoSystem : public hardware_interface::SystemInterface
{
public:
  hardware_interface::CallbackReturn on_init(
    const hardware_interface::HardwareComponentInterfaceParams & params) override;
  hardware_interface::CallbackReturn on_configure(const rclcpp_lifecycle::State &) override;
  hardware_interface::CallbackReturn on_activate(const rclcpp_lifecycle::State &) override;
  hardware_interface::return_type read(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;
  hardware_interface::return_type write(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;

private:
  struct Joint
  {
    int index;
    hardware_interface::StateInterface::SharedPtr position, velocity, effort;  // empty: not there
    hardware_interface::CommandInterface::SharedPtr command;
  };

  std::unique_ptr<MujocoRobot> robot_;
  std::vector<Joint> joints_;
  int steps_ = 1;  // of the physics in a cycle
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__MUJOCO_SYSTEM_HPP_
