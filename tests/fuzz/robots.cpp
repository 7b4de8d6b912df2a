// Any bytes give a file whose delays are between nothing and a day, for any client; what is behind
// the first 500 KiB changes nothing.
#include "policy/robots.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const RobotsFile file = RobotsFile::parse(text);
  const std::string_view user_agent = text.substr(0, text.find('\n'));
  for (const std::string_view who : {user_agent, std::string_view("curl/8"), std::string_view()}) {
    const Duration delay = file.crawl_delay(who);
    if (delay < Duration(0) || delay > kLongestCrawlDelay) std::abort();
  }
  if (size % 64 == 5) {  // seldom: it is half a megabyte
    std::string padded(text);
    padded.append("\n").resize(kMaxRobotsSize, '\n');
    if (RobotsFile::parse(padded + "User-agent: *\nCrawl-delay: 5\n") !=
        RobotsFile::parse(padded)) {
      std::abort();
    }
  }
  return 0;
}
