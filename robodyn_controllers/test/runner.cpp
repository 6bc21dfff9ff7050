// Runs the controller's core by commands from its input, one a line; for test_controllers.py.
//
//   library NAME                          -> joint names; link names
//   law MODE ramp hold kp.. kd.. damping.. limit..
//   values FILE | payload LINK mass com.. inertia..
//   update period q.. qd.. q_r.. qd_r.. qdd_r..    -> status torques.. allocations
//   trajectory POINTS WITH_QD WITH_QDD time q.. [qd..] [qdd..] ... | stop
//   sample time q.. qd..                  -> playing q.. qd.. qdd.. allocations
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <new>
#include <sstream>
#include <string>

#include "robodyn_controllers/control_law.hpp"

namespace
{

long allocations = 0;

}  // namespace

void * operator new(std::size_t size)
{
  ++allocations;
  if (void * place = std::malloc(size)) {
    return place;
  }
  throw std::bad_alloc();
}

void operator delete(void * place) noexcept {++allocations; std::free(place);}
void operator delete(void * place, std::size_t) noexcept {++allocations; std::free(place);}

namespace core = robodyn_controllers;

namespace
{

class Runner
{
public:
  void run(const std::string & line)
  {
    std::istringstream in(line);
    std::string command, word;
    in >> command;
    if (command == "library") {
      in >> word;
      library_ = std::make_shared<core::DynamicsLibrary>(word);
      player_ = std::make_unique<core::TrajectoryPlayer>(n());
      motion_ = core::Motion(n());
      for (const auto & names : {library_->joint_names(), library_->link_names()}) {
        for (const auto & name : names) {
          std::printf("%s ", name.c_str());
        }
        std::printf("; ");
      }
    } else if (command == "law") {
      core::Settings settings;
      in >> word >> settings.ramp >> settings.hold;
      settings.mode = core::mode_of(word);
      for (auto * values : {&settings.kp, &settings.kd, &settings.damping,
          &settings.effort_limit})
      {
        *values = read(in, n());
      }
      law_ = std::make_unique<core::ControlLaw>(library_, settings);
    } else if (command == "values") {
      in >> word;
      std::ifstream file(word);
      std::stringstream text;
      text << file.rdbuf();
      law_->set_values(text.str());
    } else if (command == "payload") {
      core::Payload payload;
      in >> payload.link >> payload.mass;
      const auto com = read(in, 3), inertia = read(in, 6);
      std::copy(com.begin(), com.end(), payload.com.begin());
      std::copy(inertia.begin(), inertia.end(), payload.inertia.begin());
      law_->set_payload(payload);
    } else if (command == "update") {
      update(in);
    } else if (command == "trajectory") {
      trajectory(in);
    } else if (command == "stop") {
      player_->set(nullptr);
    } else if (command == "sample") {
      sample(in);
    } else {
      throw std::runtime_error("unknown command " + command);
    }
  }

private:
  std::size_t n() const {return library_->joints();}

  static core::Vector read(std::istream & in, std::size_t count)
  {
    core::Vector values;
    for (std::string word; values.size() < count && in >> word; ) {
      values.push_back(std::strtod(word.c_str(), nullptr));  // nan and inf are valid
    }
    return values;
  }

  static void print(const core::Vector & values)
  {
    for (double value : values) {
      std::printf("%.17g ", value);
    }
  }

  void update(std::istream & in)
  {
    const double period = read(in, 1).at(0);
    const auto q = read(in, n()), qd = read(in, n());
    core::Motion reference;
    reference.q = read(in, n());
    reference.qd = read(in, n());
    reference.qdd = read(in, n());
    core::Vector torque(n());
    const long before = allocations;
    const auto status = law_->update(q, qd, reference, period, torque);
    const long made = allocations - before;
    std::printf("%d ", static_cast<int>(status));
    print(torque);
    std::printf("%ld", made);
  }

  void trajectory(std::istream & in)
  {
    const auto sizes = read(in, 3);
    std::vector<core::Point> points(static_cast<std::size_t>(sizes[0]));
    for (auto & point : points) {
      point.time = read(in, 1).at(0);
      point.q = read(in, n());
      point.qd = read(in, sizes[1] != 0.0 ? n() : 0);
      point.qdd = read(in, sizes[2] != 0.0 ? n() : 0);
    }
    player_->set(std::make_shared<core::Trajectory>(std::move(points), n()));
  }

  void sample(std::istream & in)
  {
    const double time = read(in, 1).at(0);
    const auto q = read(in, n()), qd = read(in, n());
    if (!playing_) {
      motion_.q = q;
      motion_.qd = qd;
    }
    const long before = allocations;
    playing_ = player_->sample(time, motion_);
    const long made = allocations - before;
    std::printf("%d ", playing_ ? 1 : 0);
    print(motion_.q);
    print(motion_.qd);
    print(motion_.qdd);
    std::printf("%ld", made);
  }

  std::shared_ptr<const core::DynamicsLibrary> library_;
  std::unique_ptr<core::ControlLaw> law_;
  std::unique_ptr<core::TrajectoryPlayer> player_;
  core::Motion motion_;
  bool playing_ = false;
};

}  // namespace

int main()
{
  Runner runner;
  for (std::string line; std::getline(std::cin, line); ) {
    try {
      runner.run(line);
    } catch (const std::exception & error) {
      std::string text = error.what();
      for (char & c : text) {
        c = c == '\n' ? ' ' : c;
      }
      std::printf("error: %s", text.c_str());
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  return 0;
}
