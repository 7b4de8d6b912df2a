#include "proxy/zone_file.h"

#include <fstream>
#include <iterator>

namespace sluice {

Result<Zone> load_zone(const std::string& name) {
  if (name == "UTC") return Zone();
  const bool plain = !name.empty() && name.front() != '/' && name.find("..") == std::string::npos &&
                     name.size() < 64;
  const Error unknown{"\"" + name + "\" is no time zone, such as \"UTC\" or \"Europe/Berlin\""};
  if (!plain) return unknown;
  std::ifstream in("/usr/share/zoneinfo/" + name, std::ios::binary);
  if (!in) return unknown;
  constexpr std::size_t kLargest = 64 * 1024;
  std::string bytes(kLargest, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  auto zone = Zone::parse(bytes);
  if (!zone) return Error{"\"" + name + "\" cannot be used: " + zone.error()};
  return zone;
}

}  // namespace sluice
