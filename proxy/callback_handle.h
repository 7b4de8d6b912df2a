// A callback that its asker can take back: dropping the handle drops the callback, wherever it
// waits to be called. Belongs to the loop on which the callback is called.
#pragma once

#include <memory>
#include <utility>

namespace sluice {

template <class Callback>
class [[nodiscard]] CallbackHandle {
 public:
  CallbackHandle() = default;
  explicit CallbackHandle(std::shared_ptr<Callback> callback) : callback_(std::move(callback)) {}
  CallbackHandle(CallbackHandle&&) noexcept = default;
  CallbackHandle& operator=(CallbackHandle&& other) noexcept {
    reset();
    callback_ = std::move(other.callback_);
    return *this;
  }
  ~CallbackHandle() { reset(); }

  void reset() {
    if (const auto callback = std::exchange(callback_, nullptr)) *callback = nullptr;
  }

 private:
  std::shared_ptr<Callback> callback_;
};

}  // namespace sluice
