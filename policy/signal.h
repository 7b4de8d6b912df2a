// What a response's header says about rates: how long to wait, what is left of which quota. Reads
// every dialect of rate-limit headers; decides nothing. Pure, allocates nothing, bounded for any
// bytes: what cannot be read is counted as junk and otherwise absent.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <type_traits>

#include "policy/time.h"

namespace sluice {

struct FieldView {
  std::string_view name, value;
};

// Looks at anyone's array of header fields: whatever has a `name` and a `value`. Owns nothing.
class FieldsView {
 public:
  FieldsView() = default;
  template <class Fields>
  requires(!std::same_as<std::remove_cvref_t<Fields>, FieldsView>) FieldsView(const Fields& fields)
      : data_(std::data(fields)),
        size_(std::size(fields)),
        get_([](const void* data, std::size_t i) {
          const auto& field = static_cast<decltype(std::data(fields))>(data)[i];
          return FieldView{field.name, field.value};
        }) {}

  std::size_t size() const { return size_; }
  FieldView operator[](std::size_t i) const { return get_(data_, i); }

 private:
  const void* data_ = nullptr;
  std::size_t size_ = 0;
  FieldView (*get_)(const void*, std::size_t) = nullptr;
};

// One allowance: "50 of 100 requests left, new ones in 30 s". What was not said is absent.
struct Quota {
  std::uint32_t dimension = 0;  // a hash of what is counted ("tokens", "daily"); 0: plain requests
  bool absolute = false;        // `reset` was a date, mostly in whole seconds
  std::optional<std::uint64_t> limit;
  std::optional<std::uint64_t> remaining;
  std::optional<Duration> reset;   // from the response on; 0: now
  std::optional<Duration> window;  // the time that `limit` is for

  bool exhausted() const { return remaining == 0u; }
  bool operator==(const Quota&) const = default;
};

struct Signal {
  static constexpr std::size_t max_quotas = 6;

  std::optional<Duration> retry_after;
  std::optional<bool> should_retry;  // x-should-retry and its like
  bool global = false;               // the limit is on who asks, not on what is asked for
  std::uint32_t bucket = 0;  // a hash of the origin's name for what shares the limit; 0: none
  std::uint16_t junk = 0;    // values nobody could read
  std::uint8_t quota_count = 0;
  std::array<Quota, max_quotas> quotas{};

  bool exhausted() const;
  // How long a refusal means: Retry-After, else until the last exhausted quota comes back.
  std::optional<Duration> named_wait() const;
  bool operator==(const Signal&) const = default;
};

// Absolute times count from the response's own Date, or from `now` when it has none.
Signal read_signal(const FieldsView& fields, UtcTime now);

// True for the fields that read_signal reads.
bool speaks_of_rates(std::string_view field_name);

}  // namespace sluice
