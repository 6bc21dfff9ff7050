#include "robodyn_controllers/dynamics_library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace robodyn_controllers
{

namespace
{

// The files that may be meant by a name, in the order in which they are tried.
std::vector<std::string> candidates(const std::string & name)
{
  if (name.find('/') != std::string::npos) {
    return {name};
  }
  const std::string file = "lib" + name + "_plugin.so";
  std::vector<std::string> files;
  if (const char * prefixes = std::getenv("AMENT_PREFIX_PATH")) {
    std::istringstream stream(prefixes);
    for (std::string prefix; std::getline(stream, prefix, ':'); ) {
      if (!prefix.empty()) {
        files.push_back(prefix + "/lib/" + file);
      }
    }
  }
  files.push_back(file);
  return files;
}

std::string list(const std::vector<std::string> & names)
{
  std::string text;
  for (const auto & name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text.empty() ? "none" : text;
}

std::vector<std::string> strings(const char * const * texts, int count)
{
  return count > 0 ? std::vector<std::string>(texts, texts + count) : std::vector<std::string>();
}

// Whether a tensor about the centre of mass is that of a body: positive semidefinite, with
// principal moments of which none exceeds the sum of the others.
bool possible(const std::array<double, 6> & inertia)
{
  const double half = (inertia[0] + inertia[3] + inertia[5]) / 2;
  // the second moments of mass, trace / 2 - inertia, must be positive semidefinite
  const double xx = half - inertia[0], yy = half - inertia[3], zz = half - inertia[5];
  const double xy = -inertia[1], xz = -inertia[2], yz = -inertia[4];
  const double slack = 1e-9 * std::abs(half);
  const double minors = xx * yy - xy * xy, minors2 = xx * zz - xz * xz, minors3 = yy * zz - yz * yz;
  const double determinant = xx * minors3 - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz);
  return xx >= -slack && yy >= -slack && zz >= -slack && minors >= -slack * half &&
         minors2 >= -slack * half && minors3 >= -slack * half &&
         determinant >= -slack * half * half;
}

}  // namespace

DynamicsLibrary::DynamicsLibrary(const std::string & name)
{
  std::string reasons;
  for (const auto & file : candidates(name)) {
    handle_ = std::shared_ptr<void>(
      dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL), [](void * handle) {
        if (handle != nullptr) {
          dlclose(handle);
        }
      });
    if (handle_) {
      break;
    }
    reasons += std::string("\n  ") + dlerror();
  }
  if (!handle_) {
    throw std::runtime_error(
            "No dynamics library '" + name + "'; valid: the name of a package that `robodyn "
            "export` wrote and that was built, or the path of its *_plugin.so. Tried:" + reasons);
  }
  using Getter = const robodyn_plugin * (*)();
  const auto getter = reinterpret_cast<Getter>(dlsym(handle_.get(), ROBODYN_PLUGIN_SYMBOL));
  if (getter == nullptr) {
    throw std::runtime_error("'" + name + "' is not a library that `robodyn export` wrote: it has "
            "no " ROBODYN_PLUGIN_SYMBOL);
  }
  table_ = getter();
  if (table_->version != ROBODYN_PLUGIN_VERSION) {
    throw std::runtime_error("'" + name + "' has a table of version " +
            std::to_string(table_->version) + "; valid: " +
            std::to_string(ROBODYN_PLUGIN_VERSION) + ". Export the robot again");
  }
  if (table_->gravity == nullptr || table_->inverse_dynamics == nullptr) {
    throw std::runtime_error("'" + name + "' lacks gravity or inverse_dynamics; export the robot "
            "with both among its --terms");
  }
}

std::vector<std::string> DynamicsLibrary::joint_names() const
{
  return strings(table_->joint_names, table_->joints);
}

std::vector<std::string> DynamicsLibrary::link_names() const
{
  return strings(table_->link_names, table_->links);
}

Vector DynamicsLibrary::nominal() const
{
  return Vector(table_->nominal, table_->nominal + table_->parameters);
}

Vector DynamicsLibrary::read_values(const std::string & text) const
{
  if (!parametric()) {
    throw std::runtime_error("The parameters are built into this library; export the robot with "
            "--parametric to exchange them");
  }
  static const char * const reasons[] = {
    "it is not a file that `robodyn export --values` wrote, or it is of another version",
    "it is for a robot with other joints, frames, gears or gravity",
    "it has too few or too many values", "a value is not a finite number"};
  Vector parameters = nominal();
  const int result = table_->read_values(text.c_str(), parameters.data());
  if (result != 0) {
    throw std::runtime_error(std::string("The values were refused: ") +
            (result >= 1 && result <= 4 ? reasons[result - 1] : "unknown reason"));
  }
  return parameters;
}

Vector DynamicsLibrary::with_payload(const Vector & parameters, const Payload & payload) const
{
  if (!parametric()) {
    throw std::runtime_error("The parameters are built into this library; export the robot with "
            "--parametric to attach payloads");
  }
  const auto links = link_names();
  const auto place = std::find(links.begin(), links.end(), payload.link);
  if (place == links.end()) {
    throw std::runtime_error("There is no moving link '" + payload.link + "'; valid: " +
            list(links));
  }
  const auto finite = [](double value) {return std::isfinite(value);};
  if (!(payload.mass >= 0) || !finite(payload.mass) ||
    !std::all_of(payload.com.begin(), payload.com.end(), finite) ||
    !std::all_of(payload.inertia.begin(), payload.inertia.end(), finite))
  {
    throw std::runtime_error("The payload of link '" + payload.link + "' has a negative mass or a "
            "value that is not a finite number");
  }
  if (!possible(payload.inertia)) {
    throw std::runtime_error("No rigid body has the inertia of the payload of link '" +
            payload.link + "'; valid: principal moments that are not negative, and of which none "
            "is larger than the sum of the others");
  }
  Vector loaded(parameters.size());
  table_->add_payload(
    parameters.data(), static_cast<int>(place - links.begin()), payload.mass, payload.com.data(),
    payload.inertia.data(), loaded.data());
  return loaded;
}

}  // namespace robodyn_controllers
