// A motion through points, evaluated in the control loop.
#ifndef ROBODYN_CONTROLLERS__TRAJECTORY_HPP_
#define ROBODYN_CONTROLLERS__TRAJECTORY_HPP_

#include <memory>
#include <utility>
#include <vector>

#include "robodyn_controllers/dynamics_library.hpp"
#include "robodyn_controllers/latest_value.hpp"

namespace robodyn_controllers
{

/// Positions (rad or m), velocities and accelerations (per s and s^2) of all joints at a time.
struct Motion
{
  explicit Motion(std::size_t joints = 0)
  : q(joints), qd(joints), qdd(joints) {}

  Vector q, qd, qdd;
};

/// A point of a trajectory; velocities and accelerations may be empty.
struct Point
{
  double time = 0.0;  ///< s from the start of the trajectory
  Vector q, qd, qdd;
};

/// Points that are joined by polynomials: quintic ones if both points have accelerations, cubic
/// ones if they have velocities only, otherwise straight lines.
class Trajectory
{
public:
  /// @throws std::runtime_error if there is no point, the times do not increase from 0 or later,
  ///   a point has the wrong number of values or one that is not finite, or the last point moves.
  Trajectory(std::vector<Point> points, std::size_t joints);

  double duration() const noexcept {return points_.back().time;}

  /// The motion at a time, s. Before the first point, a polynomial leads from `start` at the time
  /// 0 to that point; after the last point it is held. Allocates nothing.
  void sample(double time, const Motion & start, Motion & motion) const noexcept;

private:
  std::vector<Point> points_;
};

/// Plays trajectories in a control loop; another thread replaces them.
class TrajectoryPlayer
{
public:
  explicit TrajectoryPlayer(std::size_t joints)
  : start_(joints) {}

  /// Replaces the trajectory, which starts at once; an empty pointer stops the motion. Not for the
  /// control loop.
  void set(std::shared_ptr<const Trajectory> trajectory) {latest_.write(std::move(trajectory));}

  /// Replaces `motion` by that of the trajectory at a time, s; returns whether one is being played.
  /// A new trajectory starts from `motion`. For the control loop: allocates and frees nothing.
  bool sample(double now, Motion & motion) noexcept;

  /// Forgets the trajectory that is being played; for the control loop.
  void stop() noexcept;

private:
  LatestValue<std::shared_ptr<const Trajectory>> latest_;
  Motion start_;        // at the beginning of the trajectory
  double begin_ = 0.0;  // s
  bool playing_ = false;
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__TRAJECTORY_HPP_
