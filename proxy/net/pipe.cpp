#include "proxy/net/pipe.h"

#include <fcntl.h>
#include <unistd.h>

namespace sluice {
namespace {

constexpr int kWanted = 1 << 20;        // bytes; the kernel may grant less
constexpr std::size_t kIdleLimit = 32;  // pipes kept by a worker

}  // namespace

std::unique_ptr<Pipe> Pipe::make() {
  int ends[2];
  if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return nullptr;
  std::unique_ptr<Pipe> pipe(new Pipe);
  pipe->out_ = OwnedSocket(ends[0]);
  pipe->in_ = OwnedSocket(ends[1]);
  fcntl(ends[1], F_SETPIPE_SZ, kWanted);
  const int granted = fcntl(ends[1], F_GETPIPE_SZ);
  pipe->capacity_ = granted > 0 ? static_cast<std::size_t>(granted) : 4096;
  return pipe;
}

std::unique_ptr<Pipe> PipeStock::take() {
  if (idle_.empty()) return Pipe::make();
  auto pipe = std::move(idle_.back());
  idle_.pop_back();
  return pipe;
}

void PipeStock::give_back(std::unique_ptr<Pipe> pipe) {
  if (pipe && pipe->empty() && idle_.size() < kIdleLimit) idle_.push_back(std::move(pipe));
}

}  // namespace sluice
