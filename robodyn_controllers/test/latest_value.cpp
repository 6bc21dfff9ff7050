// A thread writes vectors of equal numbers as fast as it can, another one reads them: no vector may
// be mixed or older than the one before, and the last one must arrive. Returns 0 on success.
#include <cstdio>
#include <thread>
#include <vector>

#include "robodyn_controllers/latest_value.hpp"

int main()
{
  constexpr double last = 20000;
  robodyn_controllers::LatestValue<std::vector<double>> latest(std::vector<double>(50, 0.0));
  std::thread writer([&latest]() {
      for (double value = 1; value <= last; ++value) {
        latest.write(std::vector<double>(50, value));
      }
    });
  double seen = 0;
  int taken = 0;
  bool wrong = false;
  while (seen < last && !wrong) {
    if (!latest.take()) {
      std::this_thread::yield();
      continue;
    }
    const auto & value = latest.value();
    wrong = value.front() <= seen;
    for (double x : value) {
      wrong = wrong || x != value.front();
    }
    seen = value.front();
    ++taken;
  }
  writer.join();
  std::printf("%d taken, last %g\n", taken, seen);
  return wrong || latest.take() ? 1 : 0;
}
