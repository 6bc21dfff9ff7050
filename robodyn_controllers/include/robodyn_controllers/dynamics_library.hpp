// Equations of motion of a robot, loaded at run time from what `robodyn export` wrote.
#ifndef ROBODYN_CONTROLLERS__DYNAMICS_LIBRARY_HPP_
#define ROBODYN_CONTROLLERS__DYNAMICS_LIBRARY_HPP_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "robodyn_controllers/robodyn_plugin.h"

namespace robodyn_controllers
{

/// Numbers for all joints, in the order of the library.
using Vector = std::vector<double>;

/// A load on a link.
struct Payload
{
  std::string link;
  double mass = 0.0;                  ///< kg; 0 removes the payload
  std::array<double, 3> com{};        ///< centre of mass in the link frame, m
  std::array<double, 6> inertia{};    ///< Ixx Ixy Ixz Iyy Iyz Izz about the centre of mass, kg m^2
};

/// A loaded library of equations; the functions of its table can be called from any thread.
class DynamicsLibrary
{
public:
  /// Loads a library.
  ///
  /// @param name  name of the exported package, such as `my_arm_dynamics`, which is looked for in
  ///   the folders of AMENT_PREFIX_PATH and then by the dynamic loader; or the path of a file.
  /// @throws std::runtime_error if there is none, or it lacks `gravity` or `inverse_dynamics`.
  explicit DynamicsLibrary(const std::string & name);

  const robodyn_plugin & table() const noexcept {return *table_;}
  std::size_t joints() const noexcept {return static_cast<std::size_t>(table_->joints);}
  std::vector<std::string> joint_names() const;
  std::vector<std::string> link_names() const;

  /// Whether parameters and payloads can be exchanged (`robodyn export --parametric`).
  bool parametric() const noexcept {return table_->parameters > 0;}

  /// The parameters of the export; empty if they are built into the code.
  Vector nominal() const;

  /// Returns the parameters in the text of a file that `robodyn export --values` wrote.
  ///
  /// @throws std::runtime_error if the text does not fit this robot.
  Vector read_values(const std::string & text) const;

  /// Returns parameters with a payload.
  ///
  /// @throws std::runtime_error if the link does not exist, the mass is negative, a value is not
  ///   finite, or no rigid body has this inertia.
  Vector with_payload(const Vector & parameters, const Payload & payload) const;

private:
  std::shared_ptr<void> handle_;
  const robodyn_plugin * table_ = nullptr;
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__DYNAMICS_LIBRARY_HPP_
