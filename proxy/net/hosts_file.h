// The machine's hosts file, read again when it changes (looked at no more than once a second).
// A missing file is an empty one; lines that make no sense are skipped, as everybody does.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/time.h"
#include "proxy/net/address.h"
#include "proxy/net/host_name.h"

namespace sluice {

NameMap<std::vector<Address>> parse_hosts(std::string_view text);  // names in lower case

// Tells whether a file is another one than at the last look. Looks at most once a second.
class FileWatch {
 public:
  explicit FileWatch(std::string path) : path_(std::move(path)) {}
  bool changed(Instant now);  // true at the first look, also when there is no such file
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool looked_ = false;
  Instant last_look_{};
  struct Print {
    ino_t inode = 0;
    off_t size = -1;
    std::int64_t seconds = 0, nanoseconds = 0;
    bool operator==(const Print&) const = default;
  } print_;
};

class HostsFile {
 public:
  explicit HostsFile(std::string path) : watch_(std::move(path)) {}
  const std::vector<Address>* find(std::string_view lower_name, Instant now);

 private:
  FileWatch watch_;
  NameMap<std::vector<Address>> names_;
};

}  // namespace sluice
