// One visit to an origin's robots.txt. It is a client of its own worker, over a socket pair, so its
// request passes the same gates, limits and checks as anybody's. Ends by itself, in bounded time
// and memory. Belongs to one worker's loop.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "policy/robots.h"
#include "policy/time.h"
#include "proxy/http/reader.h"
#include "proxy/inside.h"
#include "proxy/net/deadline.h"
#include "proxy/net/stream.h"

namespace sluice {

class Worker;

// For how long an answer for robots.txt may be believed, by its own word and within bounds.
Duration robots_keep(const Head& answer);

class RobotsFetch final : public Stream::Handler, public Deadline::Handler {
 public:
  // What it says, and for how long that may be believed. Called once, from the loop.
  using Done = std::function<void(RobotsFile file, Duration keep)>;

  // `patience` is for the whole visit, holds included; within bounds.
  RobotsFetch(Worker& worker, Inside place, Duration patience);
  void start(Done done);

 private:
  struct Answer {
    std::uint16_t status = 0;
    bool ours = false;  // a refusal of Sluice's own: the origin has said nothing
    std::string location;
    Duration keep{};
  };

  void visit(const std::string& path);
  void on_ready() override;
  void on_deadline() override;
  bool read(std::string_view in);  // true: there is nothing more to read
  void take_head(const Head& head);
  void conclude();
  void finish(RobotsFile file, Duration keep);

  Worker& worker_;
  const Inside place_;
  const Duration patience_;
  Done done_;
  Deadline deadline_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Reader> reader_;
  Answer answer_;
  std::string body_;
  unsigned visits_ = 0;
};

}  // namespace sluice
