// Passes the latest value from one thread to another without locks.
#ifndef ROBODYN_CONTROLLERS__LATEST_VALUE_HPP_
#define ROBODYN_CONTROLLERS__LATEST_VALUE_HPP_

#include <array>
#include <atomic>

namespace robodyn_controllers
{

/// A triple buffer: one thread writes values, another one reads the latest of them.
///
/// Neither ever waits for the other. The reader neither copies a value nor frees memory: it uses
/// one of three places, the writer another one, and they exchange their place against the third.
template<class Value>
class LatestValue
{
public:
  explicit LatestValue(const Value & initial = Value())
  : values_{initial, initial, initial} {}

  /// Makes a value available to the reader. Only one thread may write at a time.
  void write(const Value & value)
  {
    values_[written_] = value;
    written_ = shared_.exchange(written_ | fresh, std::memory_order_acq_rel) & ~fresh;
  }

  /// Takes the latest value; returns whether there is one that was not taken before. Reader only.
  bool take() noexcept
  {
    if (!(shared_.load(std::memory_order_relaxed) & fresh)) {
      return false;
    }
    read_ = shared_.exchange(read_, std::memory_order_acq_rel) & ~fresh;
    return true;
  }

  /// The value that was taken last; it stays unchanged until the next `take`. Reader only.
  const Value & value() const noexcept {return values_[read_];}

private:
  static constexpr unsigned fresh = 4;  // set if the shared place holds a value not yet taken
  std::array<Value, 3> values_;
  unsigned written_ = 0, read_ = 1;
  std::atomic<unsigned> shared_{2};
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__LATEST_VALUE_HPP_
