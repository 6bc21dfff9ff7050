// Prints the accelerations of a simulated robot, from the velocities after one short step; for
// test_controllers.py. Arguments: URDF, time step, number of joints n, n names, n positions,
// n efforts.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <sstream>
#include <vector>

#include "robodyn_controllers/mujoco_robot.hpp"

int main(int, char ** argv)
{
  try {
    std::ifstream file(argv[1]);
    std::stringstream text;
    text << file.rdbuf();
    const double timestep = std::atof(argv[2]);
    auto robot = robodyn_controllers::MujocoRobot::from_urdf(text.str(), timestep);
    const int n = std::atoi(argv[3]);
    std::vector<int> joints;
    for (int k = 0; k < n; ++k) {
      joints.push_back(robot.joint(argv[4 + k]));
      robot.set_position(joints.back(), std::atof(argv[4 + n + k]));
      robot.set_effort(joints.back(), std::atof(argv[4 + 2 * n + k]));
    }
    robot.step();
    for (int joint : joints) {
      std::printf("%.17g ", robot.velocity(joint) / robot.timestep());
    }
  } catch (const std::exception & error) {
    std::printf("error: %s", error.what());
  }
  return 0;
}
