#include "robodyn_controllers/control_law.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace robodyn_controllers
{

namespace
{

constexpr std::pair<const char *, Mode> modes[] = {
  {"gravity_compensation", Mode::gravity_compensation}, {"pd_gravity", Mode::pd_gravity},
  {"feedforward_pd", Mode::feedforward_pd}, {"feedforward_gravity", Mode::feedforward_gravity},
  {"computed_torque", Mode::computed_torque}};

bool finite(const Vector & values) noexcept
{
  return std::all_of(values.begin(), values.end(), [](double x) {return std::isfinite(x);});
}

double or_zero(double value) noexcept
{
  return std::isfinite(value) ? value : 0.0;
}

}  // namespace

Mode mode_of(const std::string & name)
{
  std::string valid;
  for (const auto & [known, mode] : modes) {
    if (name == known) {
      return mode;
    }
    valid += (valid.empty() ? "" : ", ") + std::string(known);
  }
  throw std::runtime_error("There is no mode '" + name + "'; valid: " + valid);
}

ControlLaw::ControlLaw(std::shared_ptr<const DynamicsLibrary> library, const Settings & settings)
: library_(std::move(library)), settings_(settings), bare_(library_->nominal()), loaded_(bare_)
{
  const std::size_t n = library_->joints();
  const std::pair<const char *, const Vector *> vectors[] = {
    {"kp", &settings_.kp}, {"kd", &settings_.kd}, {"damping", &settings_.damping},
    {"effort_limit", &settings_.effort_limit}};
  for (const auto & [name, values] : vectors) {
    const auto valid = [](double value) {return value >= 0;};
    if (values->size() != n || !std::all_of(values->begin(), values->end(), valid)) {
      throw std::runtime_error(std::string(name) + " has " + std::to_string(values->size()) +
              " values, or a negative one; valid: " + std::to_string(n) + " values >= 0");
    }
  }
  for (Vector * vector : {&q_, &qd_, &free_, &acceleration_, &result_, &part_, &last_, &fade_}) {
    vector->assign(n, 0.0);
  }
  target_ = Motion(n);
}

void ControlLaw::set_values(const std::string & text)
{
  Vector bare = library_->read_values(text);
  loaded_.write(payload_.mass > 0 ? library_->with_payload(bare, payload_) : bare);
  bare_ = std::move(bare);
}

void ControlLaw::set_payload(const Payload & payload)
{
  loaded_.write(library_->with_payload(bare_, payload));
  payload_ = payload;
}

void ControlLaw::reset() noexcept
{
  started_ = false;
  fading_ = missing_ = 0.0;
  std::fill(fade_.begin(), fade_.end(), 0.0);
}

const double * ControlLaw::parameters() const noexcept
{
  return loaded_.value().empty() ? nullptr : loaded_.value().data();
}

Status ControlLaw::update(
  const Vector & q, const Vector & qd, const Motion & reference, double period,
  Vector & torque) noexcept
{
  const std::size_t n = q_.size();
  const bool changed = loaded_.take() && started_;
  const bool measured = finite(q) && finite(qd);
  if (measured) {
    std::copy(q.begin(), q.end(), q_.begin());
    std::copy(qd.begin(), qd.end(), qd_.begin());
    compute(parameters(), reference);
  }
  const bool good = measured && finite(result_);
  if (good) {
    missing_ = 0.0;
    started_ = true;
  } else {
    missing_ += period;
    library_->table().gravity(parameters(), q_.data(), result_.data());
    if (!started_ || missing_ > settings_.hold || !finite(result_)) {
      std::fill(torque.begin(), torque.end(), 0.0);
      std::fill(last_.begin(), last_.end(), 0.0);
      return Status::lost;
    }
  }
  if (changed && good && settings_.ramp > 0) {  // continue from the torque of the last cycle
    fading_ = settings_.ramp;
    for (std::size_t k = 0; k < n; ++k) {
      fade_[k] = last_[k] - result_[k];
    }
  }
  const double left = fading_ > 0 ? fading_ / settings_.ramp : 0.0;
  fading_ = std::max(0.0, fading_ - period);
  bool limited = false;
  for (std::size_t k = 0; k < n; ++k) {
    const double limit = settings_.effort_limit[k], wanted = result_[k] + left * fade_[k];
    torque[k] = last_[k] = std::clamp(wanted, -limit, limit);
    limited = limited || torque[k] != wanted;
  }
  return !good ? Status::holding : limited ? Status::saturated : Status::good;
}

void ControlLaw::compute(const double * parameters, const Motion & reference) noexcept
{
  const std::size_t n = q_.size();
  const robodyn_plugin & table = library_->table();
  const Mode mode = settings_.mode;
  for (std::size_t k = 0; k < n; ++k) {
    const bool none = mode == Mode::gravity_compensation || !std::isfinite(reference.q[k]);
    free_[k] = none ? 1.0 : 0.0;
    target_.q[k] = none ? q_[k] : reference.q[k];
    target_.qd[k] = none ? 0.0 : or_zero(reference.qd[k]);
    target_.qdd[k] = none ? 0.0 : or_zero(reference.qdd[k]);
  }
  const double * q = q_.data(), * q_r = target_.q.data(), * qd_r = target_.qd.data();
  double * result = result_.data(), * part = part_.data();
  const auto add = [&](double factor) {
      for (std::size_t k = 0; k < n; ++k) {
        result[k] += factor * part[k];
      }
    };
  if (mode == Mode::computed_torque) {
    for (std::size_t k = 0; k < n; ++k) {
      acceleration_[k] = free_[k] == 1.0 ? 0.0 : target_.qdd[k] +
        settings_.kd[k] * (qd_r[k] - qd_[k]) + settings_.kp[k] * (q_r[k] - q[k]);
    }
    table.inverse_dynamics(parameters, q, qd_.data(), acceleration_.data(), result);
    if (table.friction != nullptr) {  // at the velocity of the reference, which has no noise
      table.friction(parameters, q, qd_.data(), part);
      add(-1.0);
      table.friction(parameters, q, qd_r, part);
      add(1.0);
    }
  } else if (mode == Mode::feedforward_pd || mode == Mode::feedforward_gravity) {
    table.inverse_dynamics(parameters, q_r, qd_r, target_.qdd.data(), result);
    if (mode == Mode::feedforward_gravity) {
      table.gravity(parameters, q, part);
      add(1.0);
      table.gravity(parameters, q_r, part);
      add(-1.0);
    }
  } else {
    table.gravity(parameters, q, result);
  }
  for (std::size_t k = 0; k < n; ++k) {
    if (free_[k] == 1.0) {
      result[k] -= settings_.damping[k] * qd_[k];
    } else if (mode != Mode::computed_torque) {
      result[k] += settings_.kp[k] * (q_r[k] - q[k]) + settings_.kd[k] * (qd_r[k] - qd_[k]);
    }
  }
}

}  // namespace robodyn_controllers
