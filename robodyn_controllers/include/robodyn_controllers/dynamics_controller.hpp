// A chainable ros2_control controller: torques from the exported equations of a robot.
#ifndef ROBODYN_CONTROLLERS__DYNAMICS_CONTROLLER_HPP_
#define ROBODYN_CONTROLLERS__DYNAMICS_CONTROLLER_HPP_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control_msgs/msg/joint_trajectory_controller_state.hpp"
#include "controller_interface/chainable_controller_interface.hpp"
#include "realtime_tools/realtime_publisher.hpp"
#include "robodyn_controllers/control_law.hpp"
#include "robodyn_controllers/dynamics_controller_parameters.hpp"
#include "robodyn_interfaces/srv/set_payload.hpp"
#include "robodyn_interfaces/srv/set_values.hpp"
#include "trajectory_msgs/msg/joint_trajectory.hpp"

namespace robodyn_controllers
{

/// Reads positions and velocities, and writes efforts.
///
/// The reference comes from the interfaces JOINT/position, JOINT/velocity and JOINT/acceleration,
/// which another controller writes, or from the topic ~/joint_trajectory.
class DynamicsController : public controller_interface::ChainableControllerInterface
{
public:
  controller_interface::CallbackReturn on_init() override;
  controller_interface::InterfaceConfiguration command_interface_configuration() const override;
  controller_interface::InterfaceConfiguration state_interface_configuration() const override;
  controller_interface::CallbackReturn on_configure(const rclcpp_lifecycle::State &) override;
  controller_interface::CallbackReturn on_activate(const rclcpp_lifecycle::State &) override;
  controller_interface::CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) override;

protected:
  std::vector<hardware_interface::CommandInterface::SharedPtr>
  on_export_reference_interfaces_list() override;
  controller_interface::return_type update_reference_from_subscribers(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;
  controller_interface::return_type update_and_write_commands(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;

private:
  using State = control_msgs::msg::JointTrajectoryControllerState;
  using SetPayload = robodyn_interfaces::srv::SetPayload;
  using SetValues = robodyn_interfaces::srv::SetValues;
  template<class Interface>
  using References = std::vector<std::reference_wrapper<Interface>>;

  std::vector<std::string> interface_names(const std::vector<std::string> & kinds) const;
  Vector for_each_joint(const std::string & name, const std::vector<double> & values) const;
  Vector effort_limits() const;
  void receive(const trajectory_msgs::msg::JointTrajectory & message);
  template<class Response>
  void change(const std::function<void()> & apply, const std::string & done, Response & response);
  void read_state() noexcept;
  void publish(const rclcpp::Time & time) noexcept;

  std::shared_ptr<dynamics_controller::ParamListener> listener_;
  std::shared_ptr<const DynamicsLibrary> library_;
  std::vector<std::string> joints_;
  std::unique_ptr<ControlLaw> law_;
  std::unique_ptr<TrajectoryPlayer> player_;
  std::uint64_t version_ = 1;

  References<hardware_interface::LoanedStateInterface> states_;      // positions, velocities
  References<hardware_interface::LoanedCommandInterface> commands_;  // efforts

  // of the control loop
  Vector q_, qd_, torque_;
  Motion reference_;
  bool playing_ = false;
  double now_ = 0.0, publish_period_ = 0.0, since_published_ = 0.0;  // s

  rclcpp::Subscription<trajectory_msgs::msg::JointTrajectory>::SharedPtr subscription_;
  rclcpp::Service<SetPayload>::SharedPtr set_payload_;
  rclcpp::Service<SetValues>::SharedPtr set_values_;
  std::unique_ptr<realtime_tools::RealtimePublisher<State>> publisher_;
  State message_;
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__DYNAMICS_CONTROLLER_HPP_
