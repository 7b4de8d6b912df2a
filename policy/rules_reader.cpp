#include "policy/rules_reader.h"

#include <algorithm>

#include "policy/classify.h"
#include "policy/path_pattern.h"
#include "policy/units.h"

namespace sluice {
namespace {

constexpr unsigned kManyCalls = 1000000;      // a bound for counts, not advice
constexpr std::size_t kMostScan = 64u << 20;  // bytes; memory does not depend on it
constexpr std::size_t kLongestLadder = 32, kMostMarkers = 1000, kMostLimits = 16;
constexpr std::size_t kLongestMarker = 256;
constexpr double kMostCost = 1e9;
constexpr std::size_t kMostPrices = 100;

using Kinds = std::vector<std::pair<std::string_view, OutcomeKind>>;

// What may count against a host; the others never do.
const Kinds& failure_kinds() {
  static const Kinds kinds = {{"rate_limited", OutcomeKind::rate_limited},
                              {"anti_bot", OutcomeKind::anti_bot},
                              {"server_error", OutcomeKind::server_error},
                              {"network", OutcomeKind::network}};
  return kinds;
}

// Sending a request again into a block makes the block longer.
const Kinds& retry_kinds() {
  static const Kinds kinds = {{"rate_limited", OutcomeKind::rate_limited},
                              {"server_error", OutcomeKind::server_error},
                              {"network", OutcomeKind::network}};
  return kinds;
}

void read_kinds(const TomlTable& table, std::string_view key, KindSet& out, const Kinds& kinds) {
  if (!table.has(key)) return;
  KindSet set;
  std::vector<std::string> ignored;
  table.read(key, ignored, [&](std::string_view word) -> std::string {
    std::vector<std::string_view> names;
    for (const auto& [name, kind] : kinds) {
      if (name == word) {
        set.insert(kind);
        return {};
      }
      names.push_back(name);
    }
    return "\"" + std::string(word) + "\" is not one of " + one_of(names);
  });
  out = set;
}

Marker read_marker(const TomlTable& table) {
  Marker marker;
  if (!table.has("in")) table.complain("in", table.path() + ".in is missing");
  table.read_choice<Marker::Place>("in", marker.in,
                                   {{"body", Marker::Place::body},
                                    {"header", Marker::Place::header},
                                    {"location", Marker::Place::location}});
  table.read("name", marker.name);
  table.read("text", marker.text);
  table.read_counts("status", marker.status, 100, 599);
  marker.name = lower_case(marker.name);
  const bool header = marker.in == Marker::Place::header;
  if (header && !is_short_token(marker.name)) {
    table.complain("name", "a marker in a header needs the header's name");
  }
  if (!header && !marker.name.empty()) {
    table.complain("name", "name is for markers in a header only");
  }
  if (!header && marker.text.empty()) table.complain("text", "a marker needs a text to look for");
  if (marker.in == Marker::Place::body && !marker.text.empty() && marker.text.size() < 4) {
    table.complain("text", "a text of less than 4 bytes is found in any page");
  }
  if (marker.text.size() > kLongestMarker) {
    table.complain("text", "a marker's text is longer than 256 bytes");
  }
  return marker;
}

// A status counts as one thing. Whoever adds it to one list means to move it there.
void settle_overlap(const TomlTable& table, ClassifyRules& rules) {
  const auto also_in = [](const std::vector<std::uint16_t>& list) {
    return [&list](std::uint16_t status) {
      return std::find(list.begin(), list.end(), status) != list.end();
    };
  };
  const bool both_written = table.has("rate_limited") && table.has("server_error");
  const auto twice = std::find_if(rules.rate_limited.begin(), rules.rate_limited.end(),
                                  also_in(rules.server_error));
  if (twice == rules.rate_limited.end()) return;
  if (both_written) {
    table.complain("server_error",
                   std::to_string(*twice) + " is in both rate_limited and server_error");
  } else if (table.has("rate_limited")) {
    std::erase_if(rules.server_error, also_in(rules.rate_limited));
  } else {
    std::erase_if(rules.rate_limited, also_in(rules.server_error));
  }
}

void read_classify(const TomlTable& table, ClassifyRules& rules) {
  table.read_counts("rate_limited", rules.rate_limited, 100, 599);
  table.read_counts("server_error", rules.server_error, 100, 599);
  read_kinds(table, "failures", rules.failures, failure_kinds());
  settle_overlap(table, rules);
  if (table.has("markers")) {
    rules.markers.clear();
    const std::size_t before = table.problem_count();
    for (const TomlTable& marker : table.tables("markers")) {
      rules.markers.push_back(read_marker(marker));
    }
    if (rules.markers.size() > kMostMarkers) {
      table.complain("markers", "classify.markers must not hold more than 1000 items");
    } else if (table.problem_count() == before) {
      const auto made = Classifier::make(rules, builtin_body_markers());
      if (!made) table.complain("markers", made.error());
    }
  }
  table.read_size<std::size_t>("scan", rules.scan, 0, kMostScan);
}

void read_ladder(const TomlTable& table, std::string_view key, std::vector<Duration>& ladder) {
  if (!table.has(key)) return;
  const std::size_t before = table.problem_count();
  table.read(key, ladder, 1ms);
  if (table.problem_count() != before) return;
  const std::string name = dotted(table.path(), key);
  if (ladder.empty()) table.complain(key, name + " must name at least one duration");
  if (ladder.size() > kLongestLadder)
    table.complain(key, name + " must not hold more than 32 items");
  if (!std::is_sorted(ladder.begin(), ladder.end())) {
    table.complain(key, name + " must not get shorter from one level to the next");
  }
}

void read_breaker(const TomlTable& table, BreakerRules& rules) {
  table.read_count("consecutive", rules.consecutive, 1u, kManyCalls);
  const TomlTable window = table.table("window");
  window.read_count("failures", rules.window.failures, 1u, kMaxWindowFailures);
  window.read_choice<OutcomeKind>("kind", rules.window.kind, failure_kinds());
  window.read("within", rules.window.within, 1ms);
  read_ladder(table, "cooldown", rules.cooldown);
  read_ladder(table, "antibot_cooldown", rules.antibot_cooldown);
  table.read("retry_after_cap", rules.retry_after_cap, 1s);
  table.read("decay", rules.decay, 1s);
  table.read_count("trial_calls", rules.trial_calls, 1u, 1000u);
  table.read_count("successes_to_close", rules.successes_to_close, 1u, 1000u);
  table.read("probe_timeout", rules.probe_timeout, 1ms);
  table.read("jitter", rules.jitter, 0.0, 1.0);
}

void read_pace(const TomlTable& table, PaceRules& rules) {
  table.read("min_delay", rules.min_delay);
  table.read("jitter", rules.jitter);
  table.read_count("max_concurrency", rules.max_concurrency, 0u, kManyCalls);
  table.read_choice<Adapt>(
      "adapt", rules.adapt,
      {{"learned", Adapt::learned}, {"linear", Adapt::linear}, {"off", Adapt::off}});
  table.read("step", rules.step, 1ms);
  table.read("cap", rules.cap, 1ms);
  table.read_count("recover_after", rules.recover_after, 1u, kManyCalls);
  table.read("crawl_delay", rules.crawl_delay);
  table.read("ramp", rules.ramp);
  if (rules.cap >= rules.min_delay) return;
  // A cap nobody wrote here gives way to the delay somebody did.
  if (!table.has("cap")) {
    rules.cap = rules.min_delay;
  } else {
    table.complain("cap", dotted(table.path(), "cap") + " (" + format_duration(rules.cap) +
                              ") must not be shorter than min_delay (" +
                              format_duration(rules.min_delay) + ")");
  }
}

void read_retry(const TomlTable& table, RetryRules& rules) {
  table.read_count("max", rules.max, 0u, 20u);
  table.read("methods", rules.methods, [](std::string_view method) {
    return is_short_token(method) ? std::string()
                                  : "\"" + std::string(method) + "\" is not a method";
  });
  read_kinds(table, "on", rules.on, retry_kinds());
}

void read_limits(const TomlTable& table, LimitRules& rules) {
  if (!table.has("requests")) return;
  rules.requests.clear();
  for (const TomlTable& item : table.tables("requests")) {
    RequestLimit limit{1, 1s};
    for (const char* key : {"count", "per"}) {
      if (!item.has(key)) item.complain(key, item.path() + "." + key + " is missing");
    }
    item.read_count<std::uint64_t>("count", limit.count, 1, 1000000000);
    item.read("per", limit.per, 1ms);
    rules.requests.push_back(limit);
  }
  if (rules.requests.size() > kMostLimits) {
    table.complain("requests", "limits.requests must not hold more than 16 items");
  }
}

void read_cost(const TomlTable& table, CostRules& rules) {
  table.read("per_request", rules.per_request, 0.0, kMostCost);
  table.read("header", rules.header);
  rules.header = lower_case(rules.header);
  if (!rules.header.empty() && !is_short_token(rules.header)) {
    table.complain("header", "\"" + rules.header + "\" is not the name of a header");
  }
  if (!table.has("paths")) return;
  rules.paths.clear();
  for (const TomlTable& item : table.tables("paths")) {
    PathCost price;
    for (const char* key : {"path", "cost"}) {
      if (!item.has(key)) item.complain(key, item.path() + "." + key + " is missing");
    }
    item.read("path", price.path);
    item.read("cost", price.cost, 0.0, kMostCost);
    if (price.path.size() > kLongestPathPattern) {
      item.complain("path", item.path() + ".path is longer than 256 bytes");
    }
    rules.paths.push_back(std::move(price));
  }
  if (rules.paths.size() > kMostPrices) {
    table.complain("paths", "cost.paths must not hold more than 100 items");
  }
}

}  // namespace

void read_rules(const TomlTable& table, Rules& rules) {
  table.read_choice<Mode>("mode", rules.mode,
                          {{"enforce", Mode::enforce}, {"observe", Mode::observe}});
  read_classify(table.table("classify"), rules.classify);
  read_breaker(table.table("breaker"), rules.breaker);
  read_pace(table.table("pace"), rules.pace);
  const TomlTable hold = table.table("hold");
  hold.read("max_wait", rules.hold.max_wait);
  hold.read_count("max_queue", rules.hold.max_queue, 0u, kManyCalls);
  read_retry(table.table("retry"), rules.retry);
  read_limits(table.table("limits"), rules.limits);
  read_cost(table.table("cost"), rules.cost);
}

bool is_short_token(std::string_view text) {
  constexpr std::string_view kToken =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~";
  return !text.empty() && text.size() <= 64 &&
         text.find_first_not_of(kToken) == std::string_view::npos;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

}  // namespace sluice
