// A pipe that carries bytes between two sockets inside the kernel (splice(2)), and the small stock
// of them that each worker keeps. A pipe goes back to the stock only when it is empty.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "proxy/net/socket.h"

namespace sluice {

class Pipe {
 public:
  static std::unique_ptr<Pipe> make();  // null when the process has no descriptors left

  int in() const { return in_.get(); }
  int out() const { return out_.get(); }
  std::size_t capacity() const { return capacity_; }
  std::size_t held() const { return held_; }
  bool empty() const { return held_ == 0; }
  void filled(std::size_t count) { held_ += count; }
  void drained(std::size_t count) { held_ -= count; }

 private:
  Pipe() = default;
  OwnedSocket in_, out_;
  std::size_t capacity_ = 0, held_ = 0;
};

class PipeStock {
 public:
  std::unique_ptr<Pipe> take();
  void give_back(std::unique_ptr<Pipe> pipe);

 private:
  std::vector<std::unique_ptr<Pipe>> idle_;
};

}  // namespace sluice
