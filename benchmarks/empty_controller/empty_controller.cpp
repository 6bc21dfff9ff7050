// A controller that claims the interfaces of DynamicsController, reads all states, and writes zeros;
// its cycles show how much time ros2_control itself takes.
#include <string>
#include <vector>

#include "controller_interface/controller_interface.hpp"
#include "pluginlib/class_list_macros.hpp"

class EmptyController : public controller_interface::ControllerInterface
{
public:
  controller_interface::CallbackReturn on_init() override
  {
    joints_ = auto_declare<std::vector<std::string>>("joints", {});
    return controller_interface::CallbackReturn::SUCCESS;
  }

  controller_interface::InterfaceConfiguration command_interface_configuration() const override
  {
    return interfaces({"effort"});
  }

  controller_interface::InterfaceConfiguration state_interface_configuration() const override
  {
    return interfaces({"position", "velocity"});
  }

  controller_interface::return_type update(
    const rclcpp::Time &, const rclcpp::Duration &) override
  {
    bool good = true;
    for (const auto & state : state_interfaces_) {
      good = state.get_optional().has_value() && good;
    }
    for (auto & command : command_interfaces_) {
      good = command.set_value(0.0) && good;
    }
    return good ? controller_interface::return_type::OK : controller_interface::return_type::ERROR;
  }

private:
  controller_interface::InterfaceConfiguration interfaces(
    const std::vector<std::string> & kinds) const
  {
    controller_interface::InterfaceConfiguration configuration{
      controller_interface::interface_configuration_type::INDIVIDUAL, {}};
    for (const auto & kind : kinds) {
      for (const auto & joint : joints_) configuration.names.push_back(joint + "/" + kind);
    }
    return configuration;
  }

  std::vector<std::string> joints_;
};

PLUGINLIB_EXPORT_CLASS(EmptyController, controller_interface::ControllerInterface)
