#include "proxy/robots/robots_fetch.h"

#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "proxy/clock.h"
#include "proxy/worker.h"

namespace sluice {
namespace {

constexpr Duration kLeastPatience = 1s;
constexpr Duration kMostPatience = 30s;
constexpr Duration kAskSoon = 1min;  // nothing was heard of the origin
constexpr Duration kLeastKept = 5min;
constexpr Duration kMostKept = 24h;  // RFC 9309 §2.4
constexpr unsigned kMaxVisits = 6;   // RFC 9309 §2.3.1.2: five redirects are followed

}  // namespace

// RFC 9111 §5.2.2.1, as far as it matters here.
Duration robots_keep(const Head& answer) {
  if (answer.status >= 500) return kLeastKept;
  Duration keep = kMostKept;
  for (const Field& field : answer.fields) {
    if (!equals_ignoring_case(field.name, "cache-control")) continue;
    for_each_element(field.value, [&](std::string_view element) {
      if (equals_ignoring_case(element.substr(0, 8), "max-age=")) {
        std::int64_t seconds = 0;
        const std::string_view digits = element.substr(8);
        const auto [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), seconds);
        if (error == std::errc() && seconds < kMostKept / 1s)
          keep = std::min<Duration>(keep, seconds * 1s);
      } else if (equals_ignoring_case(element, "no-store") ||
                 equals_ignoring_case(element, "no-cache")) {
        keep = kLeastKept;
      }
    });
  }
  return std::max(keep, kLeastKept);
}

RobotsFetch::RobotsFetch(Worker& worker, Inside place, Duration patience)
    : worker_(worker),
      place_(std::move(place)),
      patience_(std::clamp(patience, kLeastPatience, kMostPatience)),
      deadline_(worker.base(), *this) {}

void RobotsFetch::start(Done done) {
  done_ = std::move(done);
  const Instant now = monotonic_now();
  deadline_.set(now + patience_, now);
  visit("/robots.txt");
}

void RobotsFetch::visit(const std::string& path) {
  int ends[2];
  ++visits_;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
    return finish({}, kAskSoon);
  }
  stream_ = std::make_unique<Stream>(worker_.base(), OwnedSocket(ends[0]), *this);
  reader_ = std::make_unique<Reader>(Reader::Kind::response, worker_.head_limit());
  answer_ = {};
  body_.clear();
  worker_.serve_inside(OwnedSocket(ends[1]), place_);
  stream_->write("GET " + path + " HTTP/1.1\r\nHost: " + place_.authority +
                 "\r\nUser-Agent: sluice/" SLUICE_VERSION
                 "\r\nAccept: text/plain, */*;q=0.1\r\nConnection: close\r\n\r\n");
}

void RobotsFetch::on_ready() {
  if (!stream_) return;
  stream_->flush();
  while (stream_->readable()) {
    const auto buffer = worker_.scratch();
    std::size_t count = 0;
    switch (stream_->read(buffer.data(), buffer.size(), count)) {
      case Io::blocked: return;
      case Io::failed: return finish({}, kAskSoon);
      case Io::ended:
        // What was cut off is read as far as it goes: the delays of a part are better than none.
        reader_->finish();
        return conclude();
      case Io::moved:
        if (read({buffer.data(), count})) return conclude();
    }
  }
}

void RobotsFetch::on_deadline() { finish({}, kAskSoon); }

bool RobotsFetch::read(std::string_view in) {
  for (;;) {
    switch (reader_->next(in)) {
      case Reader::Event::more: return false;
      case Reader::Event::head: take_head(reader_->head()); break;
      case Reader::Event::body:
        body_.append(reader_->data().substr(0, kMaxRobotsSize - body_.size()));
        if (body_.size() >= kMaxRobotsSize) return true;
        break;
      case Reader::Event::end:
        if (answer_.status >= 200) return true;
        break;  // a 1xx: the final response follows
      case Reader::Event::error: return true;
    }
  }
}

void RobotsFetch::take_head(const Head& head) {
  answer_.status = head.status;
  answer_.keep = robots_keep(head);
  for (const Field& field : head.fields) {
    if (equals_ignoring_case(field.name, "sluice-reason")) answer_.ours = true;
    if (equals_ignoring_case(field.name, "location")) answer_.location = field.value;
  }
}

void RobotsFetch::conclude() {
  if (answer_.ours || answer_.status < 200) return finish({}, kAskSoon);
  if (answer_.status < 300) return finish(RobotsFile::parse(body_), answer_.keep);
  if (answer_.status < 400) {
    // RFC 9309 §2.3.1.2; another place has a robots.txt of its own.
    const std::string_view here = std::string_view(answer_.location);
    const std::string root = (place_.secure ? "https://" : "http://") + place_.authority;
    std::string path;
    if (here.starts_with('/') && !here.starts_with("//")) path = here;
    if (here.starts_with(root + "/")) path = here.substr(root.size());
    if (!path.empty() && visits_ < kMaxVisits) return visit(path);
    return finish({}, answer_.keep);
  }
  // RFC 9309 §2.3.1.3: none of 4xx says anything. §2.3.1.4: with 5xx nobody knows; which paths may
  // be visited is not ours to say, so the policy's own pace holds until the next look.
  finish({}, answer_.keep);
}

void RobotsFetch::finish(RobotsFile file, Duration keep) {
  deadline_.clear();
  stream_.reset();
  if (const Done done = std::exchange(done_, nullptr)) done(std::move(file), keep);
}

}  // namespace sluice
