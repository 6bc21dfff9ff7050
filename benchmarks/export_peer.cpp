// Pinocchio's C++ beside exported C, in one process and in turns; prints nanoseconds a call.
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/joint-configuration.hpp>
#include <pinocchio/algorithm/model.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/parsers/urdf.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

// the exported code of any robot
extern "C" {
extern const char * const arm_joint_names[];
void arm_inverse_dynamics(const double * q, const double * qd, const double * qdd, double * result);
void arm_mass_matrix(const double * q, double * result);
void arm_forward_dynamics(const double * q, const double * qd, const double * tau, double * result);
}

using Clock = std::chrono::steady_clock;
constexpr int states = 64;

// Nanoseconds of each of `calls` calls: the median and the largest.
template<class F>
void spread(const char * name, F && f, int calls)
{
  std::vector<float> times(calls);
  for (int k = 0; k < calls; ++k) {
    const auto begin = Clock::now();
    f(k % states);
    times[k] = std::chrono::duration<float, std::nano>(Clock::now() - begin).count();
  }
  std::nth_element(times.begin(), times.begin() + calls / 2, times.end());
  const float median = times[calls / 2];
  std::nth_element(times.begin(), times.begin() + calls - calls / 10000, times.end());
  const float most = times[calls - calls / 10000];
  const float largest = *std::max_element(times.begin(), times.end());
  std::printf("spread %s median %.0f p9999 %.0f largest %.0f\n", name, median, most, largest);
}

int main(int argc, char ** argv)
{
  // arguments: URDF, seconds for each pair, calls for the spread, names of locked joints
  const double seconds = std::atof(argv[2]);
  pinocchio::Model full, model;
  pinocchio::urdf::buildModel(argv[1], full);
  std::vector<pinocchio::JointIndex> locked;
  for (int i = 4; i < argc; ++i) locked.push_back(full.getJointId(argv[i]));
  pinocchio::buildReducedModel(full, locked, pinocchio::neutral(full), model);
  model.gravity.linear() = Eigen::Vector3d(0, 0, -9.80665);
  const int n = model.nv;
  if (model.nq != n) {
    std::printf("Pinocchio has joints of more than one coordinate\n");
    return 1;
  }
  pinocchio::Data data(model);
  std::vector<int> order(n);  // ours of each of Pinocchio's
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < n; ++k) {
      if (model.names[i + 1] == arm_joint_names[k]) order[i] = k;
    }
  }
  std::srand(1);
  std::vector<Eigen::VectorXd> q(states), v(states), a(states), tau(states);
  std::vector<std::vector<double>> oq(states), ov(states), oa(states), ot(states);
  for (int s = 0; s < states; ++s) {
    q[s] = Eigen::VectorXd::Random(n);
    v[s] = Eigen::VectorXd::Random(n);
    a[s] = Eigen::VectorXd::Random(n);
    tau[s] = pinocchio::rnea(model, data, q[s], v[s], a[s]);
    for (auto * x : {&oq[s], &ov[s], &oa[s], &ot[s]}) x->resize(n);
    for (int i = 0; i < n; ++i) {
      oq[s][order[i]] = q[s][i];
      ov[s][order[i]] = v[s][i];
      oa[s][order[i]] = a[s][i];
      ot[s][order[i]] = tau[s][i];
    }
  }
  std::vector<double> out(n * n);
  const auto ours_id = [&](int s) {
      arm_inverse_dynamics(oq[s].data(), ov[s].data(), oa[s].data(), out.data());};
  const auto ours_m = [&](int s) {arm_mass_matrix(oq[s].data(), out.data());};
  const auto ours_fd = [&](int s) {
      arm_forward_dynamics(oq[s].data(), ov[s].data(), ot[s].data(), out.data());};
  const auto pin_id = [&](int s) {pinocchio::rnea(model, data, q[s], v[s], a[s]);};
  const auto pin_m = [&](int s) {pinocchio::crba(model, data, q[s]);};
  const auto pin_fd = [&](int s) {pinocchio::aba(model, data, q[s], v[s], tau[s]);};

  double worst = 0;  // what is timed must agree
  for (int s = 0; s < states; ++s) {
    ours_id(s);
    for (int i = 0; i < n; ++i) {
      worst = std::max(worst, std::abs(out[order[i]] - tau[s][i]) / tau[s].cwiseAbs().maxCoeff());
    }
    ours_fd(s);
    for (int i = 0; i < n; ++i) {
      worst = std::max(worst, std::abs(out[order[i]] - a[s][i]));
    }
  }
  std::printf("difference %g\n", worst);

  struct Contender {const char * name; std::function<void(int)> run; int loops; double best;};
  // each call is wrapped in a loop of its own, so that the indirect call does not count
  const auto loop = [](auto f) {
      return [f](int rounds) {
               for (int r = 0; r < rounds; ++r) {
                 for (int s = 0; s < states; ++s) f(s);
               }
             };
    };
  std::vector<Contender> all = {
    {"inverse_dynamics ours", loop(ours_id), 0, 0}, {"inverse_dynamics pinocchio", loop(pin_id), 0, 0},
    {"mass_matrix ours", loop(ours_m), 0, 0}, {"mass_matrix pinocchio", loop(pin_m), 0, 0},
    {"forward_dynamics ours", loop(ours_fd), 0, 0}, {"forward_dynamics pinocchio", loop(pin_fd), 0, 0}};
  for (auto & c : all) {
    c.run(2);
    const auto begin = Clock::now();
    c.run(4);
    const double one = std::chrono::duration<double>(Clock::now() - begin).count() / 4;
    c.loops = std::max(1, static_cast<int>(4e-4 / one));
    c.best = std::numeric_limits<double>::infinity();
  }
  const auto end = Clock::now() + std::chrono::duration<double>(seconds * 3);
  while (Clock::now() < end) {
    for (auto & c : all) {
      const auto begin = Clock::now();
      c.run(c.loops);
      const double t = std::chrono::duration<double>(Clock::now() - begin).count();
      c.best = std::min(c.best, t / c.loops / states);
    }
  }
  for (const auto & c : all) std::printf("time %s %.1f\n", c.name, c.best * 1e9);
  const int calls = std::atoi(argv[3]);
  if (calls > 0) {
    spread("inverse_dynamics ours", ours_id, calls);
    spread("inverse_dynamics pinocchio", pin_id, calls);
  }
  return 0;
}
