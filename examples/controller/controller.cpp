// A control loop of 1 kHz around exported dynamics; the robot is simulated in the same process.
#include <mujoco/mujoco.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "lwr4.hpp"

constexpr std::size_t n = lwr4::Dynamics::joints;
constexpr double period = 0.001;  // s
using Vector = std::array<double, n>;

// Start of the motion, rad, and frequencies and amplitude of a slow sine of every joint.
constexpr Vector start = {0.3, 0.5, -0.4, -1.2, 0.2, 0.7, 0.0};
constexpr Vector frequency = {0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5};  // Hz
constexpr double amplitude = 0.3;                                    // rad

// Gains of the error's dynamics e'' + 2 w e' + w^2 e = 0, the same for all joints.
constexpr double w = 20.0;  // rad/s

struct State
{
  Vector q, qd;
};

Vector gravity_compensation(const lwr4::Dynamics & arm, const State & state)
{
  return arm.gravity(state.q);
}

Vector computed_torque(const lwr4::Dynamics & arm, const State & state, double t, Vector & error)
{
  Vector acceleration;
  for (std::size_t k = 0; k < n; ++k) {
    // amplitude * (1 - cos) starts at rest, without a jump of the velocity
    const double rate = 2 * M_PI * frequency[k], phase = rate * t;
    const double q = start[k] + amplitude * (1 - std::cos(phase));
    const double qd = amplitude * rate * std::sin(phase);
    const double qdd = amplitude * rate * rate * std::cos(phase);
    error[k] = q - state.q[k];
    acceleration[k] = qdd + 2 * w * (qd - state.qd[k]) + w * w * error[k];
  }
  return arm.inverse_dynamics(state.q, state.qd, acceleration);
}

// The simulated robot: MuJoCo, with the joints in the order of the exported code.
class Robot
{
public:
  explicit Robot(const char * file)
  : model_(mj_loadModel(file, nullptr))
  {
    if (model_ == nullptr) {
      std::fprintf(stderr, "%s: cannot be loaded\n", file);
      std::exit(2);
    }
    data_ = mj_makeData(model_);
    for (std::size_t k = 0; k < n; ++k) {
      const int joint = mj_name2id(model_, mjOBJ_JOINT, lwr4::Dynamics::joint_name(k));
      if (joint < 0) {
        std::fprintf(stderr, "%s: no joint %s\n", file, lwr4::Dynamics::joint_name(k));
        std::exit(2);
      }
      position_[k] = model_->jnt_qposadr[joint];
      velocity_[k] = model_->jnt_dofadr[joint];
    }
  }

  ~Robot()
  {
    mj_deleteData(data_);
    mj_deleteModel(model_);
  }

  Robot(const Robot &) = delete;
  Robot & operator=(const Robot &) = delete;

  void reset()
  {
    mj_resetData(model_, data_);
    for (std::size_t k = 0; k < n; ++k) {
      data_->qpos[position_[k]] = start[k];
    }
    mj_forward(model_, data_);
  }

  State read() const
  {
    State state;
    for (std::size_t k = 0; k < n; ++k) {
      state.q[k] = data_->qpos[position_[k]];
      state.qd[k] = data_->qvel[velocity_[k]];
    }
    return state;
  }

  void write(const Vector & torque)
  {
    for (std::size_t k = 0; k < n; ++k) {
      data_->qfrc_applied[velocity_[k]] = torque[k];
    }
    mj_step(model_, data_);
  }

private:
  mjModel * model_;
  mjData * data_;
  std::array<int, n> position_, velocity_;
};

double now()
{
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

// Requests real-time priority and locked memory, if the system permits them.
bool become_real_time()
{
  sched_param priority{};
  priority.sched_priority = 80;
  const bool scheduled = sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
  return scheduled && mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
}

struct Times
{
  std::vector<double> cost, late;  // s, of each cycle

  void print() const
  {
    for (const auto & [name, values] : {std::pair{"control", cost}, std::pair{"woken late", late}}) {
      std::vector<double> sorted = values;
      std::sort(sorted.begin(), sorted.end());
      std::printf(
        "%-12s median %.2f us, 99.9 %% %.2f us, largest %.2f us\n", name,
        sorted[sorted.size() / 2] * 1e6, sorted[sorted.size() - 1 - sorted.size() / 1000] * 1e6,
        sorted.back() * 1e6);
    }
  }
};

// Calls a control law each period; returns the number of cycles.
template<class Law>
void loop(Robot & robot, double seconds, bool wait, Times & times, Law && law)
{
  const auto cycles = static_cast<int>(seconds / period);
  timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  for (int cycle = 0; cycle < cycles; ++cycle) {
    if (wait) {
      next.tv_nsec += static_cast<long>(period * 1e9);
      if (next.tv_nsec >= 1000000000L) {
        next.tv_nsec -= 1000000000L;
        ++next.tv_sec;
      }
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, nullptr);
      times.late.push_back(now() - (next.tv_sec + 1e-9 * next.tv_nsec));
    } else {
      times.late.push_back(0.0);
    }
    const State state = robot.read();
    const double begin = now();
    const Vector torque = law(state, cycle * period);
    times.cost.push_back(now() - begin);
    robot.write(torque);
  }
}

int main(int argc, char ** argv)
{
  if (argc < 3) {
    std::fprintf(stderr, "usage: controller ROBOT.mjb SECONDS [--no-wait]\n");
    return 2;
  }
  const double seconds = std::atof(argv[2]);
  const bool wait = argc < 4 || std::strcmp(argv[3], "--no-wait") != 0;
  if (!(seconds >= 0.01 && seconds <= 3600)) {
    std::fprintf(stderr, "SECONDS must be from 0.01 to 3600\n");
    return 2;
  }
  Times times;
  times.cost.reserve(static_cast<std::size_t>(2 * seconds / period) + 2);
  times.late.reserve(times.cost.capacity());
  std::printf("scheduler: %s\n", wait && become_real_time() ? "SCHED_FIFO" : "ordinary");

  const lwr4::Dynamics arm;
  Robot robot(argv[1]);
  robot.reset();
  double drift = 0;
  loop(robot, seconds, wait, times, [&](const State & state, double) {
      for (std::size_t k = 0; k < n; ++k) {
        drift = std::max(drift, std::abs(state.q[k] - start[k]));
      }
      return gravity_compensation(arm, state);
    });
  std::printf("gravity compensation: largest drift %.3g rad\n", drift);

  robot.reset();
  double square = 0, largest = 0;
  int samples = 0;
  loop(robot, seconds, wait, times, [&](const State & state, double t) {
      Vector error;
      const Vector torque = computed_torque(arm, state, t, error);
      for (double e : error) {
        square += e * e;
        largest = std::max(largest, std::abs(e));
        ++samples;
      }
      return torque;
    });
  std::printf(
    "computed torque: error rms %.3g rad, largest %.3g rad\n", std::sqrt(square / samples), largest);
  times.print();
  return drift < 1e-2 && largest < 1e-2 ? 0 : 1;
}
