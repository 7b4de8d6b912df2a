#include "proxy/tls/file_stamp.h"

#include <sys/stat.h>

namespace sluice {

std::string file_stamp(const std::string& path) {
  struct stat about {};
  if (path.empty() || stat(path.c_str(), &about) != 0) return "-";
  return std::to_string(about.st_mtim.tv_sec) + "." + std::to_string(about.st_mtim.tv_nsec) + "/" +
         std::to_string(about.st_ino) + "/" + std::to_string(about.st_mode);
}

}  // namespace sluice
