#pragma once

#include <utility>

namespace sherd {

/// Sole owner of a C handle. `Destroy` is called once with the raw handle; it must not throw, and
/// reports its own failures. `Null` is the value that means "nothing owned".
template <class T, auto Destroy, T Null = T{}>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T raw) noexcept : raw_(raw) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  Handle(Handle&& other) noexcept : raw_(std::exchange(other.raw_, Null)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      raw_ = std::exchange(other.raw_, Null);
    }
    return *this;
  }
  ~Handle() { reset(); }

  T get() const noexcept { return raw_; }
  explicit operator bool() const noexcept { return raw_ != Null; }
  /// Destroys what is owned, if anything.
  void reset() noexcept {
    if (raw_ != Null) Destroy(std::exchange(raw_, Null));
  }

 private:
  T raw_ = Null;
};

}  // namespace sherd
