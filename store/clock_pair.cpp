#include "store/clock_pair.h"

#include <fstream>
#include <string>

namespace sluice {

std::uint64_t read_boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  if (id.empty()) return 0;
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace sluice
