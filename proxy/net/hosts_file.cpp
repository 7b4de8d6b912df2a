#include "proxy/net/hosts_file.h"

#include <algorithm>
#include <fstream>
#include <utility>

namespace sluice {

namespace {

constexpr std::size_t max_file = 16 << 20;  // block lists of several megabytes are common
constexpr std::size_t max_addresses = 16;   // of one name

// The next word of `line`, taken off it; empty at the end.
std::string_view take_word(std::string_view& line) {
  const auto start = std::min(line.find_first_not_of(" \t\r"), line.size());
  line.remove_prefix(start);
  const auto end = std::min(line.find_first_of(" \t\r"), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

std::string read_start(const std::string& path, std::size_t most) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char block[16384];
  while (text.size() < most && file.read(block, sizeof block).gcount() > 0)
    text.append(block, static_cast<std::size_t>(file.gcount()));
  return text;
}

}  // namespace

NameMap<std::vector<Address>> parse_hosts(std::string_view text) {
  NameMap<std::vector<Address>> names;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    const auto address = parse_ip(take_word(line));
    if (!address) continue;
    for (auto word = take_word(line); !word.empty(); word = take_word(line)) {
      const auto name = HostName::parse(word);
      if (!name) continue;
      auto& known = names[std::string(name->view())];
      if (known.size() < max_addresses &&
          std::find(known.begin(), known.end(), *address) == known.end())
        known.push_back(*address);
    }
  }
  return names;
}

bool FileWatch::changed(Instant now) {
  if (looked_ && now - last_look_ < 1s) return false;
  last_look_ = now;
  Print print;
  struct stat info {};
  if (stat(path_.c_str(), &info) == 0)
    print = {info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
  const bool first = !std::exchange(looked_, true);
  return std::exchange(print_, print) != print || first;
}

const std::vector<Address>* HostsFile::find(std::string_view lower_name, Instant now) {
  if (watch_.changed(now)) names_ = parse_hosts(read_start(watch_.path(), max_file));
  const auto found = names_.find(lower_name);
  return found == names_.end() ? nullptr : &found->second;
}

}  // namespace sluice
