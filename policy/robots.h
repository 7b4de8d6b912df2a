// What a robots.txt says about how fast it may be crawled: the Crawl-delay of each group (RFC 9309
// knows groups, Crawl-delay is an extension of old). Which paths are allowed is not our business.
// Pure and bounded: any bytes give a file.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "policy/time.h"

namespace sluice {

inline constexpr std::size_t kMaxRobotsSize = 500 * 1024;  // RFC 9309 §2.5: what is read of it
inline constexpr Duration kLongestCrawlDelay = 24h;        // a longer one counts as this

class RobotsFile {
 public:
  // Says nothing to anybody.
  RobotsFile() = default;
  static RobotsFile parse(std::string_view text);

  // Between two requests of this client, by its User-Agent: the group that names it best, else the
  // one for everybody. 0: as fast as it likes.
  Duration crawl_delay(std::string_view user_agent) const;

  bool operator==(const RobotsFile&) const = default;

 private:
  void add(const std::vector<std::string>& agents, Duration delay);

  std::map<std::string, Duration> groups_;  // by agent in lower case; "*": everybody
};

}  // namespace sluice
