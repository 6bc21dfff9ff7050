#include "robodyn_controllers/mujoco_system.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "hardware_interface/lexical_casts.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace robodyn_controllers
{

using hardware_interface::CallbackReturn;
using hardware_interface::return_type;

namespace
{

std::string parameter(
  const std::unordered_map<std::string, std::string> & parameters, const std::string & name,
  const std::string & otherwise)
{
  const auto place = parameters.find(name);
  return place == parameters.end() ? otherwise : place->second;
}

void set(const hardware_interface::StateInterface::SharedPtr & interface, double value)
{
  if (interface) {
    std::ignore = interface->set_value(value);
  }
}

}  // namespace

CallbackReturn MujocoSystem::on_init(
  const hardware_interface::HardwareComponentInterfaceParams & params)
{
  if (hardware_interface::SystemInterface::on_init(params) != CallbackReturn::SUCCESS) {
    return CallbackReturn::ERROR;
  }
  try {
    const auto file = parameter(info_.hardware_parameters, "model", "");
    const double timestep =
      hardware_interface::stod(parameter(info_.hardware_parameters, "timestep", "0.001"));
    robot_ = std::make_unique<MujocoRobot>(
      file.empty() ? MujocoRobot::from_urdf(info_.original_xml, timestep) :
      MujocoRobot::from_file(file));
    const double cycle = info_.rw_rate > 0 ? 1.0 / info_.rw_rate : robot_->timestep();
    steps_ = std::max(1, static_cast<int>(std::lround(cycle / robot_->timestep())));
    if (std::abs(steps_ * robot_->timestep() - cycle) > 1e-9) {
      throw std::runtime_error("A cycle of " + std::to_string(cycle) + " s is not a multiple of "
              "the time step of the simulation, " + std::to_string(robot_->timestep()) + " s");
    }
    for (const auto & joint : info_.joints) {
      if (joint.command_interfaces.size() != 1 || joint.command_interfaces[0].name != "effort") {
        throw std::runtime_error("Joint " + joint.name + " must have one command interface, "
                "effort");
      }
      const int index = robot_->joint(joint.name);
      robot_->set_armature(
        index, hardware_interface::stod(parameter(joint.parameters, "armature", "0")));
      for (const auto & state : joint.state_interfaces) {
        if (state.name == "position" && !state.initial_value.empty()) {
          robot_->set_position(index, hardware_interface::stod(state.initial_value));
        }
      }
    }
  } catch (const std::exception & error) {
    RCLCPP_ERROR(get_logger(), "%s", error.what());
    return CallbackReturn::ERROR;
  }
  return CallbackReturn::SUCCESS;
}

CallbackReturn MujocoSystem::on_configure(const rclcpp_lifecycle::State &)
{
  joints_.clear();
  for (const auto & joint : info_.joints) {
    const auto state = [&](const char * kind) {
        const std::string name = joint.name + "/" + kind;
        return has_state(name) ? get_state_interface_handle(name) : nullptr;
      };
    joints_.push_back(
      {robot_->joint(joint.name), state("position"), state("velocity"), state("effort"),
        get_command_interface_handle(joint.name + "/effort")});
  }
  return CallbackReturn::SUCCESS;
}

CallbackReturn MujocoSystem::on_activate(const rclcpp_lifecycle::State &)
{
  for (const auto & joint : joints_) {
    std::ignore = joint.command->set_value(std::numeric_limits<double>::quiet_NaN());
  }
  return CallbackReturn::SUCCESS;
}

return_type MujocoSystem::read(const rclcpp::Time &, const rclcpp::Duration &)
{
  for (const auto & joint : joints_) {
    set(joint.position, robot_->position(joint.index));
    set(joint.velocity, robot_->velocity(joint.index));
    set(joint.effort, robot_->effort(joint.index));
  }
  return return_type::OK;
}

return_type MujocoSystem::write(const rclcpp::Time &, const rclcpp::Duration &)
{
  bool braked = false;
  for (const auto & joint : joints_) {
    const double effort = joint.command->get_optional().value_or(robot_->effort(joint.index));
    braked = braked || std::isnan(effort);
    robot_->set_effort(joint.index, std::isfinite(effort) ? effort : 0.0);
  }
  if (!braked) {
    robot_->step(steps_);
  }
  return return_type::OK;
}

}  // namespace robodyn_controllers

PLUGINLIB_EXPORT_CLASS(robodyn_controllers::MujocoSystem, hardware_interface::SystemInterface)
