#include "proxy/known_keys.h"

#include "policy/host_pattern.h"

namespace sluice {
namespace {

constexpr std::string_view kPolicyPrefix = "policy/";
constexpr std::uint16_t kHttpsPort = 443;

void take(std::vector<KnownKey>& keys, ListedHost& host) {
  keys.push_back({std::move(host.key), std::move(host.state)});
}

// Keys are in order, so those that begin alike stand together.
Result<bool> take_all(std::vector<KnownKey>& keys, Store& store, const std::string& beginning,
                      const ClockPair& now, Duration longest) {
  std::string after = beginning;
  while (true) {
    auto page = list_hosts(store, after, kMaxPageEntries, now, longest);
    if (!page) return Error{page.error()};
    for (ListedHost& host : page->hosts) {
      if (!host.key.starts_with(beginning)) return true;
      after = host.key;
      take(keys, host);
    }
    if (!page->more) return true;
  }
}

bool has_port(std::string_view host) {
  const auto colon = host.rfind(':');
  return colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos;
}

}  // namespace

Result<std::vector<KnownKey>> find_keys(Store& store, const std::string& named,
                                        const ClockPair& now, Duration longest) {
  std::vector<KnownKey> keys;
  const auto stored = store.get(std::string(kHostPrefix) + named);
  if (!stored) return Error{stored.error()};
  if (stored->value) {
    auto loaded = load_host(store, named, now, longest);
    keys.push_back({named, loaded ? std::optional(std::move(loaded->state)) : std::nullopt});
  }
  if (named.starts_with(kPolicyPrefix) || named.find('#') != std::string::npos) return keys;
  for (const char* next : {"#", ":"}) {
    if (*next == ':' && has_port(named)) continue;
    const auto taken = take_all(keys, store, named + next, now, longest);
    if (!taken) return Error{taken.error()};
  }
  return keys;
}

Result<std::vector<KnownKey>> all_keys(Store& store, const ClockPair& now, Duration longest) {
  std::vector<KnownKey> keys;
  const auto taken = take_all(keys, store, {}, now, longest);
  if (!taken) return Error{taken.error()};
  return keys;
}

const Policy& policy_of(const Rulebook& rules, std::string_view key) {
  if (key.starts_with(kPolicyPrefix)) {
    key.remove_prefix(kPolicyPrefix.size());
    for (const auto& policy : rules.load().set->policies())
      if (policy->name == key) return *policy;
    return rules.load().set->fallback();
  }
  const auto host = parse_host_pattern(key.substr(0, key.find('#')));
  if (!host) return rules.load().set->fallback();
  return *rules.match(host->name, host->port == 0 ? kHttpsPort : host->port, "/").policy;
}

std::optional<std::string> shared_key(const Rulebook& rules, const std::string& named) {
  if (named.starts_with(kPolicyPrefix)) return std::nullopt;
  const Policy& policy = policy_of(rules, named);
  if (policy.scope != Scope::policy) return std::nullopt;
  return std::string(kPolicyPrefix) + policy.name;
}

std::array<std::string_view, 2> keys_above(std::string_view key) {
  std::array<std::string_view, 2> above;
  if (key.starts_with(kPolicyPrefix)) return above;
  std::size_t count = 0;
  if (const auto hash = key.find('#'); hash != std::string_view::npos)
    above[count++] = key = key.substr(0, hash);
  if (has_port(key)) above[count] = key.substr(0, key.rfind(':'));
  return above;
}

}  // namespace sluice
