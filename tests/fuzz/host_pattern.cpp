// Any bytes give a host pattern whose one spelling reads as itself, or an error; a request's host
// gives a name within its bounds that stays what it is.
#include "policy/host_pattern.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "policy/path_pattern.h"

namespace {

using namespace sluice;

void require(bool truth) {
  if (!truth) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto pattern = parse_host_pattern(bytes)) {
    const auto again = parse_host_pattern(to_string(*pattern));
    require(again && *again == *pattern);
    require(pattern->name.size() <= 253);
    HostBuffer buffer;
    require(normalise_host(pattern->name, buffer) == pattern->name);
  }
  HostBuffer buffer, second;
  const std::string_view name = normalise_host(bytes, buffer);
  require(name.size() <= 253);
  if (!name.empty() && name.back() != '.' && name.front() != '[') {
    require(normalise_host(name, second) == name);
  }

  const auto cut = bytes.find('\0');
  if (cut == std::string_view::npos) return 0;
  const auto pattern = bytes.substr(0, std::min(cut, kLongestPathPattern));
  const auto path = bytes.substr(cut + 1);
  require(path_matches(path, path) || path.find('?') != std::string_view::npos);
  require(!more_specific_path(pattern, path) || !more_specific_path(path, pattern));
  (void)path_matches(pattern, path);
  return 0;
}
