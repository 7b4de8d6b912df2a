// Which keys somebody wants to see, in which order: search, filter, sort and cut over the rows of a
// KeyTable. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/result.h"
#include "proxy/admin/request.h"
#include "proxy/admin/source.h"

namespace sluice {

enum class KeySort : std::uint8_t {
  attention,  // what a person should look at first
  key,
  policy,
  until,
  level,
  delay,
  in_flight,
  held,
  requests,
  refused,
};

enum class KeyFilter : std::uint8_t { all, open, half_open, closed, slowed, waiting };

struct KeyQuery {
  static constexpr std::size_t kMaxLimit = 1000;

  std::string search;  // part of the key or of its policy's name, lower case; empty: all
  KeyFilter filter = KeyFilter::all;
  KeySort sort = KeySort::attention;
  bool descending = false;
  std::string after;  // only keys behind this one: to walk them all, with sort = key
  std::size_t offset = 0, limit = 100;
  bool history = false;
};

Result<KeyQuery> read_key_query(const AdminRequest& request);

struct KeySelection {
  std::size_t matched = 0;            // before offset and limit
  std::vector<const KeyRow*> window;  // into the rows
};
KeySelection select_keys(const std::vector<KeyRow>& rows, const KeyQuery& query);

bool passes(const KeyRow& row, KeyFilter filter);

// A whole number within bounds; none: it is something else.
std::optional<std::size_t> parse_count(std::string_view text, std::size_t most);

}  // namespace sluice
