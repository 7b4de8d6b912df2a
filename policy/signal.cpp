#include "policy/signal.h"

#include <algorithm>

#include "policy/dialects.h"
#include "policy/http_date.h"

namespace sluice {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

// A field name in lower case, on the stack. Empty when it is longer than any that we know.
class LowerName {
 public:
  explicit LowerName(std::string_view name) {
    if (name.size() > text_.size()) return;
    std::transform(name.begin(), name.end(), text_.begin(), lower);
    size_ = name.size();
  }
  std::string_view view() const { return {text_.data(), size_}; }

 private:
  std::array<char, 64> text_;
  std::size_t size_ = 0;
};

constexpr std::string_view families[] = {
    "ratelimit-",            // IETF drafts up to 06, Twitch, Docker
    "x-ratelimit-",          // GitHub, OpenAI, Discord, Reddit, Atlassian, Kong
    "x-rate-limit-",         // X, Okta
    "anthropic-ratelimit-",  //
    "x-hubspot-ratelimit-",  //
    "x-ms-ratelimit-",       // Azure
};

// What is left of a quota field's name after its family; empty: it is of none.
std::string_view after_family(std::string_view name) {
  for (std::string_view family : families) {
    if (name.starts_with(family)) return name.substr(family.size());
  }
  return {};
}

// Nearly every field of nearly every response ends here, by its first letters and its length.
bool may_matter(std::string_view name) {
  if (name.size() < 9) return false;
  switch (lower(name[0])) {
    case 'r': return lower(name[1]) == 'a' || lower(name[2]) == 't';
    case 'a': return lower(name[1]) == 'n' && lower(name[2]) == 't';
    case 's': return lower(name[1]) == 't' && lower(name[2]) == 'r';
    case 'x':
      switch (lower(name[2])) {
        case 'r': return lower(name[3]) == 'a';
        case 's': return lower(name[3]) == 'h';
        case 'h': return lower(name[3]) == 'u';
        case 'm': return lower(name[3]) == 's';
        default: return false;
      }
    default: return false;
  }
}

// A quota field's name apart: which number it is, and of what. "input-tokens-remaining" and
// "remaining-input-tokens" are the same.
struct QuotaName {
  enum class Number : std::uint8_t { none, limit, remaining, reset } number = Number::none;
  std::uint32_t dimension = 0;
};

QuotaName split_quota_name(std::string_view rest) {
  QuotaName result;
  std::array<char, 64> dimension;
  std::size_t size = 0;
  while (!rest.empty()) {
    const auto dash = rest.find('-');
    const auto word = rest.substr(0, dash);
    rest.remove_prefix(dash == std::string_view::npos ? rest.size() : dash + 1);
    using Number = QuotaName::Number;
    const Number number = word == "limit"       ? Number::limit
                          : word == "remaining" ? Number::remaining
                          : word == "reset"     ? Number::reset
                                                : Number::none;
    if (number != Number::none && result.number == Number::none) {
      result.number = number;
    } else if (result.number != Number::reset || word != "after") {  // Discord's reset-after
      // The words together are shorter than the name, which is at most as long as this array.
      if (size > 0) dimension[size++] = '-';
      size = static_cast<std::size_t>(
          std::copy(word.begin(), word.end(), dimension.begin() + size) - dimension.begin());
    }
  }
  result.dimension = name_hash({dimension.data(), size});
  return result;
}

class Reading {
 public:
  Reading(Signal& signal, UtcTime date) : signal_(signal), date_(date) {}

  void field(std::string_view name, std::string_view value) {
    if (name == "retry-after") {
      const auto reset = read_reset(value, date_);
      wait(reset ? std::optional(reset->wait) : std::nullopt);
    } else if (name == "retry-after-ms" || name == "x-ms-retry-after-ms") {
      wait(read_milliseconds(value));
    } else if (name == "x-should-retry" || name == "stripe-should-retry") {
      signal_.should_retry = read_flag(value, signal_.should_retry);
    } else if (name == "x-shopify-shop-api-call-limit") {
      used_of_limit(value);
    } else if (name == "ratelimit" || name == "ratelimit-policy") {
      items(value);
    } else if (const auto rest = after_family(name); !rest.empty()) {
      quota_field(rest, value);
    }
  }

 private:
  void junk() { signal_.junk = static_cast<std::uint16_t>(std::min(signal_.junk + 1, 0xffff)); }

  // Said twice, the longer one counts.
  void wait(std::optional<Duration> duration) {
    if (!duration) return junk();
    signal_.retry_after = std::max(signal_.retry_after.value_or(Duration(0)), *duration);
  }

  std::optional<bool> read_flag(std::string_view value, std::optional<bool> before) {
    const LowerName flag(trim_spaces(value));
    if (flag.view() == "true") return true;
    if (flag.view() == "false") return false;
    junk();
    return before;
  }

  // The quota of that dimension, new or known; none when there is no more room.
  Quota* quota(std::uint32_t dimension) {
    for (std::size_t i = 0; i < signal_.quota_count; ++i) {
      if (signal_.quotas[i].dimension == dimension) return &signal_.quotas[i];
    }
    if (signal_.quota_count == Signal::max_quotas) return nullptr;
    Quota& fresh = signal_.quotas[signal_.quota_count++];
    fresh.dimension = dimension;
    return &fresh;
  }

  static void set_remaining(Quota& quota, std::uint64_t remaining) {
    quota.remaining = std::min(quota.remaining.value_or(remaining), remaining);
  }
  // Deltas are preferred over dates; of two alike the later one holds.
  static void set_reset(Quota& quota, Reset reset) {
    if (quota.reset && quota.absolute != reset.absolute) {
      if (reset.absolute) return;
    } else if (quota.reset) {
      reset.wait = std::max(*quota.reset, reset.wait);
    }
    quota.reset = reset.wait;
    quota.absolute = reset.absolute;
  }

  void quota_field(std::string_view rest, std::string_view value) {
    using Number = QuotaName::Number;
    const auto name = split_quota_name(rest);
    if (name.number == Number::none) return other_field(rest, value);
    if (name.number == Number::reset) {
      const auto reset = read_reset(value, date_);
      if (!reset) return junk();
      if (Quota* const entry = quota(name.dimension)) set_reset(*entry, *reset);
      return;
    }
    const auto count = read_count(value);
    if (!count) return junk();
    Quota* const entry = quota(name.dimension);
    if (!entry) return;
    if (name.number == Number::limit) entry->limit = *count;
    if (name.number == Number::remaining) set_remaining(*entry, *count);
  }

  // Discord: whose limit it is.
  void other_field(std::string_view rest, std::string_view value) {
    if (rest == "bucket") signal_.bucket = name_hash(trim_spaces(value));
    if (rest == "global") signal_.global = read_flag(value, signal_.global).value_or(false);
    if (rest == "scope" && LowerName(trim_spaces(value)).view() == "global") signal_.global = true;
  }

  // Shopify's leaky bucket: "32/40".
  void used_of_limit(std::string_view value) {
    const auto slash = value.find('/');
    if (slash == std::string_view::npos) return junk();
    const auto used = read_decimal(value.substr(0, slash));
    const auto limit = read_decimal(value.substr(slash + 1));
    if (!used || !limit) return junk();
    Quota* const entry = quota(name_hash("shop"));
    if (!entry) return;
    entry->limit = limit->whole;
    set_remaining(*entry, limit->whole - std::min(limit->whole, used->whole));
  }

  void items(std::string_view value) {
    const auto list = read_rate_items(value);
    if (!list) return junk();
    for (std::size_t i = 0; i < list->count; ++i) {
      const RateItem& item = list->item[i];
      Quota* const entry = quota(name_hash(item.name));
      if (!entry) return;
      if (item.quota) entry->limit = item.quota;
      if (item.remaining) set_remaining(*entry, *item.remaining);
      if (item.reset_s) set_reset(*entry, {seconds(*item.reset_s), false});
      if (item.window_s) entry->window = seconds(*item.window_s);
    }
  }
  static Duration seconds(std::uint64_t n) {
    constexpr std::uint64_t ten_years = 315'360'000;
    return 1s * static_cast<std::int64_t>(std::min(n, ten_years));
  }

  Signal& signal_;
  UtcTime date_;
};

// When the origin sent this, by its own clock. Its Date is cut to the second; where our clock is in
// that same second, it tells which part of it.
UtcTime sent_at(std::optional<UtcTime> date, UtcTime now) {
  if (!date || (now >= *date && now - *date < 1s)) return now;
  return *date;
}

bool is_date(std::string_view name) {
  return name.size() == 4 && lower(name[0]) == 'd' && lower(name[1]) == 'a' &&
         lower(name[2]) == 't' && lower(name[3]) == 'e';
}

}  // namespace

bool Signal::exhausted() const {
  return std::any_of(quotas.begin(), quotas.begin() + quota_count,
                     [](const Quota& quota) { return quota.exhausted(); });
}

std::optional<Duration> Signal::named_wait() const {
  // A zero would have us ask again at once, in the face of a refusal.
  if (retry_after) return *retry_after > Duration(0) ? *retry_after : Duration(1s);
  // A quota with something left is not why we were refused. One that does not say may be.
  const bool any_exhausted = exhausted();
  std::optional<Duration> latest;
  for (std::size_t i = 0; i < quota_count; ++i) {
    const Quota& quota = quotas[i];
    if (any_exhausted ? !quota.exhausted() : quota.remaining.has_value()) continue;
    if (!quota.reset) continue;
    // A date in whole seconds is over when the next second begins. A distance of 0 says nothing.
    const Duration wait = quota.absolute ? *quota.reset + 1s : *quota.reset;
    if (wait > Duration(0)) latest = std::max(latest.value_or(wait), wait);
  }
  return latest;
}

bool speaks_of_rates(std::string_view field_name) {
  if (!may_matter(field_name)) return false;
  const LowerName lowered(field_name);
  const auto name = lowered.view();
  return name == "retry-after" || name == "retry-after-ms" || name == "x-ms-retry-after-ms" ||
         name == "x-should-retry" || name == "stripe-should-retry" ||
         name == "x-shopify-shop-api-call-limit" || name == "ratelimit" ||
         !after_family(name).empty();
}

Signal read_signal(const FieldsView& fields, UtcTime now) {
  Signal signal;
  std::string_view date;
  bool any = false;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto field = fields[i];
    any = any || may_matter(field.name);
    if (is_date(field.name)) date = field.value;
  }
  if (!any) return signal;
  Reading reading(signal, sent_at(parse_http_date(trim_spaces(date), now), now));
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto field = fields[i];
    if (!may_matter(field.name)) continue;
    reading.field(LowerName(field.name).view(), field.value);
  }
  return signal;
}

}  // namespace sluice
