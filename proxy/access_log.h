// One line per request, for those who ask for it. Never a credential, never a query string: only
// what an operator needs to see who waited for what. Any thread may write; a thread of its own
// does the disk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "policy/result.h"
#include "policy/time.h"

namespace spdlog {
class logger;
}

namespace sluice {

struct AccessEntry {
  std::uint64_t id = 0;
  std::string client;  // address without port
  std::string user;    // empty: none
  std::string method;
  std::string host;                      // with port
  std::string path;                      // without the query
  std::uint16_t status = 0;              // 0: the client left before an answer
  std::uint64_t received = 0, sent = 0;  // body bytes from and to the client
  Instant start;
  Duration to_first_byte{}, total{};
  std::string_view reason;  // of a refusal, or "client-left"; empty: none
};

class AccessLog {
 public:
  // `where`: "-" or a file. JSON lines or text.
  static Result<std::unique_ptr<AccessLog>> open(const std::string& where, bool json);
  ~AccessLog();
  void write(const AccessEntry& entry);

 private:
  AccessLog() = default;
  std::shared_ptr<spdlog::logger> logger_;
  bool json_ = false;
};

std::string format_text(const AccessEntry& entry);
std::string format_json(const AccessEntry& entry);

}  // namespace sluice
