#include "robodyn_controllers/trajectory.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

namespace robodyn_controllers
{

namespace
{

// Position, velocity and acceleration of one joint.
struct JointMotion
{
  double q, qd, qdd;
};

bool finite(const Vector & values)
{
  return std::all_of(values.begin(), values.end(), [](double x) {return std::isfinite(x);});
}

JointMotion at(const Point & point, std::size_t joint)
{
  return {point.q[joint], point.qd.empty() ? 0.0 : point.qd[joint],
    point.qdd.empty() ? 0.0 : point.qdd[joint]};
}

// The motion on the polynomial from a to b at the time t after a; h is the time from a to b.
// Without velocities the polynomial is a straight line, without accelerations a cubic one.
JointMotion between(
  const JointMotion & a, const JointMotion & b, double h, double t, bool velocities,
  bool accelerations)
{
  const double s = t / h, travel = b.q - a.q;
  if (!velocities) {
    return {a.q + s * travel, travel / h, 0.0};
  }
  // coefficients in powers of s; derivatives with respect to s
  double c[6] = {a.q, h * a.qd, 0.0, 0.0, 0.0, 0.0};
  if (!accelerations) {
    c[2] = 3 * travel - h * (2 * a.qd + b.qd);
    c[3] = -2 * travel + h * (a.qd + b.qd);
  } else {
    const double square = h * h;
    c[2] = square * a.qdd / 2;
    const double q = travel - c[1] - c[2], qd = h * b.qd - c[1] - 2 * c[2];
    const double qdd = square * b.qdd - 2 * c[2];
    c[3] = 10 * q - 4 * qd + qdd / 2;
    c[4] = -15 * q + 7 * qd - qdd;
    c[5] = 6 * q - 3 * qd + qdd / 2;
  }
  JointMotion motion{0.0, 0.0, 0.0};
  for (int k = 5; k >= 0; --k) {
    motion.q = motion.q * s + c[k];
  }
  for (int k = 5; k >= 1; --k) {
    motion.qd = motion.qd * s + k * c[k];
  }
  for (int k = 5; k >= 2; --k) {
    motion.qdd = motion.qdd * s + k * (k - 1) * c[k];
  }
  return {motion.q, motion.qd / h, motion.qdd / (h * h)};
}

}  // namespace

Trajectory::Trajectory(std::vector<Point> points, std::size_t joints)
: points_(std::move(points))
{
  if (points_.empty()) {
    throw std::runtime_error("The trajectory has no points");
  }
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const Point & point = points_[i];
    const std::string name = "Point " + std::to_string(i) + " of the trajectory ";
    if (point.q.size() != joints || (!point.qd.empty() && point.qd.size() != joints) ||
      (!point.qdd.empty() && point.qdd.size() != joints))
    {
      throw std::runtime_error(name + "has " + std::to_string(point.q.size()) + " positions, " +
              std::to_string(point.qd.size()) + " velocities and " +
              std::to_string(point.qdd.size()) + " accelerations; valid: " +
              std::to_string(joints) + " positions, and as many or none of the others");
    }
    if (!finite(point.q) || !finite(point.qd) || !finite(point.qdd) || !std::isfinite(point.time)) {
      throw std::runtime_error(name + "has a value that is not a finite number");
    }
    if (point.time < 0 || (i > 0 && point.time <= points_[i - 1].time)) {
      throw std::runtime_error(name + "is at " + std::to_string(point.time) + " s; valid: times "
              "that increase from 0 or later");
    }
  }
  const Point & last = points_.back();
  const auto zero = [](double x) {return x == 0.0;};
  if (!std::all_of(last.qd.begin(), last.qd.end(), zero) ||
    !std::all_of(last.qdd.begin(), last.qdd.end(), zero))
  {
    throw std::runtime_error("The trajectory does not end at rest, so that its end cannot be held; "
            "valid: velocities and accelerations of 0 in the last point");
  }
}

void Trajectory::sample(double time, const Motion & start, Motion & motion) const noexcept
{
  const std::size_t n = motion.q.size();
  const auto next = std::upper_bound(
    points_.begin(), points_.end(), time,
    [](double value, const Point & point) {return value < point.time;});
  if (next == points_.end()) {
    for (std::size_t k = 0; k < n; ++k) {
      motion.q[k] = points_.back().q[k];
      motion.qd[k] = motion.qdd[k] = 0.0;
    }
    return;
  }
  const bool first = next == points_.begin();
  const Point & b = *next;
  const Point & a = first ? b : *(next - 1);
  const double begin = first ? 0.0 : a.time;
  const bool velocities = !a.qd.empty() && !b.qd.empty();
  const bool accelerations = velocities && !a.qdd.empty() && !b.qdd.empty();
  for (std::size_t k = 0; k < n; ++k) {
    const JointMotion from = first ? JointMotion{start.q[k], start.qd[k], start.qdd[k]} : at(a, k);
    const JointMotion now = between(
      from, at(b, k), b.time - begin, time - begin, velocities, accelerations);
    motion.q[k] = now.q;
    motion.qd[k] = now.qd;
    motion.qdd[k] = now.qdd;
  }
}

bool TrajectoryPlayer::sample(double now, Motion & motion) noexcept
{
  if (latest_.take()) {
    playing_ = latest_.value() != nullptr;
    begin_ = now;
    std::copy(motion.q.begin(), motion.q.end(), start_.q.begin());
    std::copy(motion.qd.begin(), motion.qd.end(), start_.qd.begin());
    std::copy(motion.qdd.begin(), motion.qdd.end(), start_.qdd.begin());
  }
  if (playing_) {
    latest_.value()->sample(now - begin_, start_, motion);
  }
  return playing_;
}

void TrajectoryPlayer::stop() noexcept
{
  latest_.take();
  playing_ = false;
}

}  // namespace robodyn_controllers
