#include "robodyn_controllers/dynamics_controller.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <stdexcept>
#include <utility>

#include "controller_interface/helpers.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace robodyn_controllers
{

using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::return_type;

namespace
{

constexpr double none = std::numeric_limits<double>::quiet_NaN();

void clear(Motion & motion) noexcept
{
  for (Vector * values : {&motion.q, &motion.qd, &motion.qdd}) {
    std::fill(values->begin(), values->end(), none);
  }
}

}  // namespace

CallbackReturn DynamicsController::on_init()
{
  try {
    listener_ = std::make_shared<dynamics_controller::ParamListener>(get_node());
    library_ = std::make_shared<DynamicsLibrary>(listener_->get_params().library);
  } catch (const std::exception & error) {
    RCLCPP_ERROR(get_node()->get_logger(), "%s", error.what());
    return CallbackReturn::ERROR;
  }
  joints_ = library_->joint_names();
  return CallbackReturn::SUCCESS;
}

std::vector<std::string> DynamicsController::interface_names(
  const std::vector<std::string> & kinds) const
{
  std::vector<std::string> names;
  for (const auto & kind : kinds) {
    for (const auto & joint : joints_) {
      names.push_back(joint + "/" + kind);
    }
  }
  return names;
}

InterfaceConfiguration DynamicsController::command_interface_configuration() const
{
  return {controller_interface::interface_configuration_type::INDIVIDUAL,
    interface_names({"effort"})};
}

InterfaceConfiguration DynamicsController::state_interface_configuration() const
{
  return {controller_interface::interface_configuration_type::INDIVIDUAL,
    interface_names({"position", "velocity"})};
}

Vector DynamicsController::for_each_joint(
  const std::string & name, const std::vector<double> & values) const
{
  if (values.size() != 1 && values.size() != joints_.size()) {
    throw std::runtime_error("Parameter " + name + " has " + std::to_string(values.size()) +
            " values; valid: 1 or " + std::to_string(joints_.size()));
  }
  return values.size() == 1 ? Vector(joints_.size(), values[0]) : Vector(values);
}

Vector DynamicsController::effort_limits() const
{
  Vector limits;
  const auto & known = get_hard_joint_limits();
  for (const auto & joint : joints_) {
    const auto place = known.find(joint);
    const bool limited = place != known.end() && place->second.has_effort_limits;
    limits.push_back(limited ? place->second.max_effort : std::numeric_limits<double>::infinity());
  }
  return limits;
}

CallbackReturn DynamicsController::on_configure(const rclcpp_lifecycle::State &)
{
  const auto node = get_node();
  const auto params = listener_->get_params();
  try {
    Settings settings;
    settings.mode = mode_of(params.mode);
    settings.kp = for_each_joint("kp", params.kp);
    settings.kd = for_each_joint("kd", params.kd);
    settings.damping = for_each_joint("damping", params.damping);
    settings.effort_limit = effort_limits();
    settings.ramp = params.ramp;
    settings.hold = params.hold;
    law_ = std::make_unique<ControlLaw>(library_, settings);
  } catch (const std::exception & error) {
    RCLCPP_ERROR(node->get_logger(), "%s", error.what());
    return CallbackReturn::ERROR;
  }
  const std::size_t n = joints_.size();
  player_ = std::make_unique<TrajectoryPlayer>(n);
  q_.assign(n, 0.0);
  qd_ = torque_ = q_;
  reference_ = Motion(n);
  publish_period_ = params.state_publish_rate > 0 ? 1.0 / params.state_publish_rate :
    std::numeric_limits<double>::infinity();

  message_.joint_names = joints_;
  for (auto * point : {&message_.reference, &message_.feedback, &message_.error}) {
    point->positions.assign(n, none);
    point->velocities.assign(n, none);
  }
  message_.reference.accelerations.assign(n, none);
  message_.output.effort.assign(n, 0.0);
  publisher_ = std::make_unique<realtime_tools::RealtimePublisher<State>>(
    node->create_publisher<State>("~/controller_state", rclcpp::SystemDefaultsQoS()));

  subscription_ = node->create_subscription<trajectory_msgs::msg::JointTrajectory>(
    "~/joint_trajectory", rclcpp::SystemDefaultsQoS(),
    [this](const trajectory_msgs::msg::JointTrajectory & message) {receive(message);});
  set_payload_ = node->create_service<SetPayload>(
    "~/set_payload", [this](
      const std::shared_ptr<SetPayload::Request> request,
      std::shared_ptr<SetPayload::Response> response) {
      const auto & inertia = request->inertia;
      const Payload payload{request->link, inertia.m, {inertia.com.x, inertia.com.y, inertia.com.z},
        {inertia.ixx, inertia.ixy, inertia.ixz, inertia.iyy, inertia.iyz, inertia.izz}};
      change([&]() {law_->set_payload(payload);}, "payload of link " + request->link + " set",
      *response);
    });
  set_values_ = node->create_service<SetValues>(
    "~/set_values", [this](
      const std::shared_ptr<SetValues::Request> request,
      std::shared_ptr<SetValues::Response> response) {
      change([&]() {law_->set_values(request->values);}, "parameters replaced", *response);
    });
  RCLCPP_INFO(
    node->get_logger(), "%s: %zu joints, mode %s, parameters %s", library_->table().robot, n,
    params.mode.c_str(), library_->parametric() ? "can be exchanged" : "built in");
  return CallbackReturn::SUCCESS;
}

std::vector<hardware_interface::CommandInterface::SharedPtr>
DynamicsController::on_export_reference_interfaces_list()
{
  std::vector<hardware_interface::CommandInterface::SharedPtr> interfaces;
  for (const char * kind : {"position", "velocity", "acceleration"}) {
    for (const auto & joint : joints_) {
      hardware_interface::InterfaceInfo info;
      info.name = kind;
      interfaces.push_back(
        std::make_shared<hardware_interface::CommandInterface>(
          hardware_interface::InterfaceDescription(
            std::string(get_node()->get_name()) + "/" + joint, info)));
    }
  }
  return interfaces;
}

CallbackReturn DynamicsController::on_activate(const rclcpp_lifecycle::State &)
{
  states_.clear();
  commands_.clear();
  if (!controller_interface::get_ordered_interfaces(
      state_interfaces_, interface_names({"position", "velocity"}), "", states_) ||
    !controller_interface::get_ordered_interfaces(
      command_interfaces_, interface_names({"effort"}), "", commands_))
  {
    RCLCPP_ERROR(
      get_node()->get_logger(), "The hardware lacks interfaces of a joint; needed: position and "
      "velocity as states, and effort as command, of each joint of library %s",
      library_->table().robot);
    return CallbackReturn::ERROR;
  }
  for (const auto & interface : ordered_exported_reference_interfaces_) {
    std::ignore = interface->set_value(none);
  }
  clear(reference_);
  player_->stop();
  law_->reset();
  playing_ = false;
  now_ = since_published_ = 0.0;
  return CallbackReturn::SUCCESS;
}

CallbackReturn DynamicsController::on_deactivate(const rclcpp_lifecycle::State &)
{
  for (auto & command : commands_) {
    std::ignore = command.get().set_value(0.0);
  }
  return CallbackReturn::SUCCESS;
}

void DynamicsController::receive(const trajectory_msgs::msg::JointTrajectory & message)
{
  const auto logger = get_node()->get_logger();
  try {
    if (is_in_chained_mode()) {
      throw std::runtime_error("The reference comes from another controller in chained mode");
    }
    if (rclcpp::Time(message.header.stamp, get_node()->get_clock()->get_clock_type()) >
      get_node()->now())
    {
      throw std::runtime_error("The trajectory starts in the future; valid: a stamp of 0, with "
              "which it starts at once");
    }
    if (message.points.empty()) {
      player_->set(nullptr);
      return;
    }
    std::vector<std::size_t> order;  // the place in the message of each joint
    for (const auto & joint : joints_) {
      const auto place = std::find(message.joint_names.begin(), message.joint_names.end(), joint);
      if (place == message.joint_names.end()) {
        throw std::runtime_error("The trajectory lacks joint " + joint);
      }
      order.push_back(static_cast<std::size_t>(place - message.joint_names.begin()));
    }
    if (message.joint_names.size() != joints_.size()) {
      throw std::runtime_error("The trajectory has joints that are unknown, or given twice");
    }
    const auto sorted = [&order](const std::vector<double> & values) {
        Vector result;
        for (std::size_t place : order) {
          if (!values.empty()) {
            result.push_back(values.at(place));
          }
        }
        return result;
      };
    std::vector<Point> points;
    for (const auto & point : message.points) {
      points.push_back({rclcpp::Duration(point.time_from_start).seconds(), sorted(point.positions),
          sorted(point.velocities), sorted(point.accelerations)});
    }
    player_->set(std::make_shared<Trajectory>(std::move(points), joints_.size()));
  } catch (const std::out_of_range &) {
    RCLCPP_WARN(logger, "Trajectory refused: a point has fewer values than joints");
  } catch (const std::exception & error) {
    RCLCPP_WARN(logger, "Trajectory refused: %s", error.what());
  }
}

template<class Response>
void DynamicsController::change(
  const std::function<void()> & apply, const std::string & done, Response & response)
{
  try {
    apply();
    ++version_;
    response.success = true;
    response.message = done;
    RCLCPP_INFO(get_node()->get_logger(), "%s", done.c_str());
  } catch (const std::exception & error) {
    response.success = false;
    response.message = error.what();
  }
  response.model_version = version_;
}

void DynamicsController::read_state() noexcept
{
  const std::size_t n = joints_.size();
  for (std::size_t k = 0; k < n; ++k) {
    q_[k] = states_[k].get().get_optional().value_or(none);
    qd_[k] = states_[n + k].get().get_optional().value_or(none);
  }
}

return_type DynamicsController::update_reference_from_subscribers(
  const rclcpp::Time &, const rclcpp::Duration & period)
{
  read_state();
  now_ += period.seconds();
  if (!playing_) {  // a trajectory starts at the measured state, at rest
    std::copy(q_.begin(), q_.end(), reference_.q.begin());
    std::fill(reference_.qd.begin(), reference_.qd.end(), 0.0);
    std::fill(reference_.qdd.begin(), reference_.qdd.end(), 0.0);
  }
  playing_ = player_->sample(now_, reference_);
  if (!playing_) {
    clear(reference_);
  }
  return return_type::OK;
}

return_type DynamicsController::update_and_write_commands(
  const rclcpp::Time & time, const rclcpp::Duration & period)
{
  const std::size_t n = joints_.size();
  if (is_in_chained_mode()) {
    read_state();
    const auto & given = ordered_exported_reference_interfaces_;
    for (std::size_t k = 0; k < n; ++k) {
      reference_.q[k] = given[k]->get_optional().value_or(none);
      reference_.qd[k] = given[n + k]->get_optional().value_or(none);
      reference_.qdd[k] = given[2 * n + k]->get_optional().value_or(none);
    }
  }
  const Status status = law_->update(q_, qd_, reference_, period.seconds(), torque_);
  bool written = true;
  for (std::size_t k = 0; k < n; ++k) {
    written = commands_[k].get().set_value(torque_[k]) && written;
  }
  since_published_ += period.seconds();
  if (since_published_ >= publish_period_) {
    publish(time);
  }
  return written && status != Status::lost ? return_type::OK : return_type::ERROR;
}

void DynamicsController::publish(const rclcpp::Time & time) noexcept
{
  const std::size_t n = joints_.size();
  message_.header.stamp = time;
  for (std::size_t k = 0; k < n; ++k) {
    message_.reference.positions[k] = reference_.q[k];
    message_.reference.velocities[k] = reference_.qd[k];
    message_.reference.accelerations[k] = reference_.qdd[k];
    message_.feedback.positions[k] = q_[k];
    message_.feedback.velocities[k] = qd_[k];
    message_.error.positions[k] = reference_.q[k] - q_[k];
    message_.error.velocities[k] = reference_.qd[k] - qd_[k];
    message_.output.effort[k] = torque_[k];
  }
  if (publisher_->try_publish(message_)) {
    since_published_ = 0.0;
  }
}

}  // namespace robodyn_controllers

PLUGINLIB_EXPORT_CLASS(
  robodyn_controllers::DynamicsController, controller_interface::ChainableControllerInterface)
