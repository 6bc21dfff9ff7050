// Torques from a measured state and a reference, without ROS.
#ifndef ROBODYN_CONTROLLERS__CONTROL_LAW_HPP_
#define ROBODYN_CONTROLLERS__CONTROL_LAW_HPP_

#include <memory>
#include <string>

#include "robodyn_controllers/dynamics_library.hpp"
#include "robodyn_controllers/latest_value.hpp"
#include "robodyn_controllers/trajectory.hpp"

namespace robodyn_controllers
{

/// The control laws of the node `feedforward`, under the same names.
enum class Mode
{
  gravity_compensation,  ///< g(q) - damping qd
  pd_gravity,            ///< g(q) + PD
  feedforward_pd,        ///< inverse dynamics of the reference + PD
  feedforward_gravity,   ///< the same with gravity at the measured position
  computed_torque,       ///< M (qdd_r + kd e' + kp e) + c + g + friction of the reference
};

/// @throws std::runtime_error if there is no mode of this name.
Mode mode_of(const std::string & name);

/// What a controller is configured with; a vector has one value for each joint.
struct Settings
{
  Mode mode = Mode::feedforward_pd;
  Vector kp, kd;         ///< N m/rad, N m s/rad; 1/s^2, 1/s for computed_torque
  Vector damping;        ///< N m s/rad, where there is no reference
  Vector effort_limit;   ///< N m or N; may be infinite
  double ramp = 0.2;     ///< s within which the torque follows a change of the parameters
  double hold = 0.1;     ///< s for which gravity is held if the state is not a number
};

/// What happened in a cycle.
enum class Status
{
  good,
  saturated,   ///< a torque was limited
  holding,     ///< the state or the result is not a number; gravity of the last good state is held
  lost,        ///< the same for longer than Settings::hold; all torques are zero
};

/// Computes torques; `update` is for the control loop, all other methods for one other thread.
class ControlLaw
{
public:
  /// @throws std::runtime_error if a vector does not have one value for each joint, or a value is
  ///   negative or not a number.
  ControlLaw(std::shared_ptr<const DynamicsLibrary> library, const Settings & settings);

  const DynamicsLibrary & library() const noexcept {return *library_;}

  /// Replaces the parameters of the robot; a payload stays. @throws std::runtime_error
  void set_values(const std::string & text);

  /// Replaces the payload; a mass of 0 removes it. @throws std::runtime_error
  void set_payload(const Payload & payload);

  /// Forgets everything about earlier cycles; called before the first one.
  void reset() noexcept;

  /// Computes the torques of a cycle; allocates nothing, takes no lock.
  ///
  /// @param q, qd  measured positions and velocities
  /// @param reference  where a position is not a number, the joint is only held against gravity and
  ///   damped; velocities and accelerations that are not numbers count as 0
  /// @param period  s since the last cycle
  /// @param torque  written: N m or N, always finite and within the limits
  Status update(
    const Vector & q, const Vector & qd, const Motion & reference, double period,
    Vector & torque) noexcept;

private:
  void compute(const double * parameters, const Motion & reference) noexcept;
  const double * parameters() const noexcept;

  std::shared_ptr<const DynamicsLibrary> library_;
  Settings settings_;
  Vector bare_;              // parameters without the payload
  Payload payload_;
  LatestValue<Vector> loaded_;  // parameters with the payload

  // of the control loop; allocated once
  Vector q_, qd_;            // last good state
  Motion target_;            // the reference without its gaps
  Vector free_;              // 1 for a joint without reference, else 0
  Vector acceleration_, result_, part_;
  Vector last_, fade_;       // last computed torque; what remains of the previous parameters
  double fading_ = 0.0;      // s left of the fade
  double missing_ = 0.0;     // s without a good state
  bool started_ = false;
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__CONTROL_LAW_HPP_
