// What one policy file says, each default where it is declared. Plain values: built by
// policy/policy_file.cpp, immutable once in a PolicySet, read by every thread. Nothing is parsed or
// decided here. In every struct, `Rules` are the numbers a role may change for part of a host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "policy/time.h"

namespace sluice {

// How an exchange ended. Values are on disk: never renumber.
enum class OutcomeKind : std::uint8_t {
  success = 0,       // 2xx, 3xx
  neutral = 1,       // other 4xx: the client's business
  rate_limited = 2,  // the origin said "too fast"
  anti_bot = 3,      // the origin said "go away"
  server_error = 4,
  network = 5,  // refused, reset, time-out on the way to the origin
  local = 6,    // our DNS, our limits, the client left: never counts
};

class KindSet {
 public:
  constexpr KindSet() = default;
  constexpr KindSet(std::initializer_list<OutcomeKind> kinds) {
    for (OutcomeKind kind : kinds) insert(kind);
  }
  constexpr void insert(OutcomeKind kind) { bits_ |= bit(kind); }
  constexpr bool contains(OutcomeKind kind) const { return (bits_ & bit(kind)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  bool operator==(const KindSet&) const = default;

 private:
  static constexpr std::uint8_t bit(OutcomeKind kind) {
    return static_cast<std::uint8_t>(1u << static_cast<unsigned>(kind));
  }
  std::uint8_t bits_ = 0;
};

enum class Scope : std::uint8_t { host, policy, credential };
enum class Mode : std::uint8_t { enforce, observe };
enum class Adapt : std::uint8_t { off, linear, learned };

struct Marker {
  enum class Place : std::uint8_t { body, header, location };
  Place in = Place::body;
  std::string name;  // of the header, lower case; empty for the other places
  std::string text;  // searched without regard to case; empty: the header is enough
  std::vector<std::uint16_t> status;  // only with these; empty: with any
  bool operator==(const Marker&) const = default;
};

struct ClassifyRules {
  std::vector<std::uint16_t> rate_limited = {429};
  std::vector<std::uint16_t> server_error = {408, 500, 502, 503, 504, 529};
  KindSet failures = {OutcomeKind::rate_limited, OutcomeKind::anti_bot, OutcomeKind::server_error,
                      OutcomeKind::network};
  std::vector<Marker> markers;   // besides the built-in ones
  std::size_t scan = 64 * 1024;  // decoded bytes of a body that are searched; 0: none
  bool operator==(const ClassifyRules&) const = default;
};

// A key remembers this many failures at most.
inline constexpr unsigned kMaxWindowFailures = 64;

struct FailureWindow {
  unsigned failures = 3;  // 1 to kMaxWindowFailures
  OutcomeKind kind = OutcomeKind::rate_limited;
  Duration within = 10min;
  bool operator==(const FailureWindow&) const = default;
};

struct BreakerRules {
  unsigned consecutive = 5;  // at least 1, like every count below
  FailureWindow window;
  // By backoff level, when the origin names no time; never empty, never descending.
  std::vector<Duration> cooldown = {1min, 5min, 15min, 1h};
  std::vector<Duration> antibot_cooldown = {1h, 6h, 12h, 24h, 48h};
  Duration retry_after_cap = 15min;  // the longest we stay shut on the origin's word
  Duration decay = 48h;              // without a failure: one level down
  unsigned trial_calls = 1;          // probes at once when half-open
  unsigned successes_to_close = 1;
  Duration probe_timeout = 30s;  // silence is a failure
  double jitter = 0.1;           // 0 to 1, a share of the cooldown; only ever lengthens
  bool operator==(const BreakerRules&) const = default;
};

struct PaceRules {
  Duration min_delay = 0s;       // between requests to one key
  Duration jitter = 0s;          // up to this much is added to each delay
  unsigned max_concurrency = 0;  // 0: no limit
  Adapt adapt = Adapt::learned;
  Duration step = 1s;           // linear: added on each 429, taken off after recover_after
  Duration cap = 60s;           // the longest learned delay; at least min_delay
  unsigned recover_after = 20;  // successes in a row
  bool crawl_delay = false;     // also respect robots.txt Crawl-delay: the larger of the two
  bool ramp = true;             // after a cooldown resume slowly
  bool operator==(const PaceRules&) const = default;
};

struct HoldRules {
  Duration max_wait = 15s;  // 0: refuse at once
  unsigned max_queue = 1000;
  bool operator==(const HoldRules&) const = default;
};

struct RetryRules {
  unsigned max = 2;  // 0: never
  std::vector<std::string> methods = {"GET", "HEAD", "OPTIONS"};
  KindSet on = {OutcomeKind::rate_limited, OutcomeKind::server_error, OutcomeKind::network};
  bool operator==(const RetryRules&) const = default;
};

struct RequestLimit {
  std::uint64_t count = 0;  // at least 1
  Duration per = 0s;        // longer than 0
  bool operator==(const RequestLimit&) const = default;
};

struct LimitRules {
  std::vector<RequestLimit> requests;
  bool operator==(const LimitRules&) const = default;
};

struct PathCost {
  std::string path;  // see policy/path_pattern.h
  double cost = 0.0;
  bool operator==(const PathCost&) const = default;
};

struct CostRules {
  double per_request = 0.0;     // in the budget's currency
  std::vector<PathCost> paths;  // other prices; the first that matches
  std::string header;           // of a response, names what the request has cost; empty: none does
  bool operator==(const CostRules&) const = default;
};

struct Rules {
  Mode mode = Mode::enforce;
  ClassifyRules classify;
  BreakerRules breaker;
  PaceRules pace;
  HoldRules hold;
  RetryRules retry;
  LimitRules limits;
  CostRules cost;
  std::uint32_t number = 0;  // among all rules of its PolicySet, which counts them
  bool operator==(const Rules&) const = default;
};

// Other numbers for part of a host: the policy's own rules with the role's keys laid over them.
struct Role {
  std::string name;
  std::vector<std::string> paths;
  Rules rules;
  bool operator==(const Role&) const = default;
};

struct Policy {
  std::string name;                         // the file's, without ".toml"
  std::vector<std::string> hosts;           // normalised, see policy/host_pattern.h
  std::vector<std::string> paths = {"/*"};  // "*" stands for any run of characters
  Scope scope = Scope::host;
  std::vector<std::string> credential_headers = {"authorization", "x-api-key", "cookie"};
  std::optional<bool> intercept;  // look inside HTTPS; none: as the configuration says
  bool upgrade = false;           // http:// from the client, verified https:// to the origin
  std::string extra_ca;           // PEM file, trusted for these origins besides the system's
  std::string client_cert;        // PEM files for mutual TLS: both or neither
  std::string client_key;
  Rules rules;
  std::vector<Role> roles;
  bool operator==(const Policy&) const = default;
};

}  // namespace sluice
