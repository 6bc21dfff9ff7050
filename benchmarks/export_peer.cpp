// Pinocchio's C++ beside exported C, in one process and in turns; prints nanoseconds a call.
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/multibody.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <thread>
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

// Nanoseconds of each of `calls` calls: the median, one in ten thousand, and the largest. Linux stops
// real-time processes that never pause for 50 ms a second, so this one pauses between calls.
template<class F>
void spread(const char * name, F && f, int calls)
{
  std::vector<float> times(calls);
  for (int k = 0; k < calls; ++k) {
    if (k % 20000 == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      f(k % states);
    }
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

// Reads the joints that export.py writes, a line for each, and builds Pinocchio's model from them;
// so it is compiled as a whole with these options, and no library with other ones takes part.
pinocchio::Model read_model(const char * file)
{
  using namespace pinocchio;
  Model model;
  std::ifstream in(file);
  std::string name;
  int parent, prismatic;
  while (in >> name >> parent >> prismatic) {
    std::vector<double> x(25);  // axis, rotation, translation, mass, centre, inertia about it
    for (auto & value : x) in >> value;
    const Eigen::Map<const Eigen::Vector3d> axis(&x[0]), translation(&x[12]), centre(&x[16]);
    const Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>> rotation(&x[3]);
    const SE3 place(rotation, translation);
    const auto add = [&](const auto & joint) {return model.addJoint(parent, joint, place, name);};
    JointIndex id;
    if (prismatic) {
      id = axis[0] == 1 ? add(JointModelPX()) : axis[1] == 1 ? add(JointModelPY()) :
        axis[2] == 1 ? add(JointModelPZ()) : add(JointModelPrismaticUnaligned(axis));
    } else {
      id = axis[0] == 1 ? add(JointModelRX()) : axis[1] == 1 ? add(JointModelRY()) :
        axis[2] == 1 ? add(JointModelRZ()) : add(JointModelRevoluteUnaligned(axis));
    }
    const Symmetric3 inertia(x[19], x[20], x[21], x[22], x[23], x[24]);
    model.appendBodyToJoint(id, Inertia(x[15], centre, inertia), SE3::Identity());
  }
  model.gravity.linear() = Eigen::Vector3d(0, 0, -9.80665);
  return model;
}

int main(int argc, char ** argv)
{
  if (argc != 4) {
    std::fprintf(stderr, "arguments: file of joints, seconds a function, calls for the spread\n");
    return 2;
  }
  const double seconds = std::atof(argv[2]);
  const pinocchio::Model model = read_model(argv[1]);
  const int n = model.nv;
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
