#include "proxy/admin/key_query.h"

#include <algorithm>
#include <charconv>
#include <compare>
#include <tuple>

#include "proxy/admin/key_table.h"

namespace sluice {
namespace {

template <class T>
struct Word {
  std::string_view word;
  T meaning;
};
constexpr Word<KeySort> kSorts[] = {
    {"attention", KeySort::attention}, {"key", KeySort::key},     {"policy", KeySort::policy},
    {"until", KeySort::until},         {"level", KeySort::level}, {"delay", KeySort::delay},
    {"in_flight", KeySort::in_flight}, {"held", KeySort::held},   {"requests", KeySort::requests},
    {"refused", KeySort::refused},
};
constexpr Word<KeyFilter> kFilters[] = {
    {"all", KeyFilter::all},
    {"open", KeyFilter::open},
    {"half-open", KeyFilter::half_open},
    {"closed", KeyFilter::closed},
    {"slowed", KeyFilter::slowed},
    {"waiting", KeyFilter::waiting},
};

template <class T, std::size_t N>
bool read_word(std::string_view text, const Word<T> (&words)[N], T& out) {
  if (text.empty()) return true;
  for (const auto& known : words) {
    if (known.word != text) continue;
    out = known.meaning;
    return true;
  }
  return false;
}

int urgency(const KeyRow& row) {
  if (row.phase == Phase::open) return 0;
  if (row.phase == Phase::half_open) return 1;
  if (row.held > 0) return 2;
  return row.delay > Duration(0) ? 3 : 4;
}

// Keys without an end come behind those with one.
auto end_of(const KeyRow& row) { return std::tuple(row.until == UtcTime{}, row.until); }

// Ascending by `sort` alone; ties are broken by the key.
std::strong_ordering compare(const KeyRow& a, const KeyRow& b, KeySort sort) {
  switch (sort) {
    case KeySort::attention:
      return std::tuple(urgency(a), end_of(a), b.held, b.delay, sent(b.counts)) <=>
             std::tuple(urgency(b), end_of(b), a.held, a.delay, sent(a.counts));
    case KeySort::key: return a.key <=> b.key;
    case KeySort::policy: return a.policy <=> b.policy;
    case KeySort::until: return end_of(a) <=> end_of(b);
    case KeySort::level: return a.level <=> b.level;
    case KeySort::delay: return a.delay <=> b.delay;
    case KeySort::in_flight: return a.in_flight <=> b.in_flight;
    case KeySort::held: return a.held <=> b.held;
    case KeySort::requests: return sent(a.counts) <=> sent(b.counts);
    case KeySort::refused: return a.counts.refused <=> b.counts.refused;
  }
  return std::strong_ordering::equal;
}

bool found(const KeyRow& row, const KeyQuery& query) {
  if (!passes(row, query.filter)) return false;
  if (!query.after.empty() && row.key <= query.after) return false;
  return query.search.empty() || row.key.find(query.search) != std::string::npos ||
         row.policy.find(query.search) != std::string::npos;
}

}  // namespace

std::optional<std::size_t> parse_count(std::string_view text, std::size_t most) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > most) return std::nullopt;
  return value;
}

bool passes(const KeyRow& row, KeyFilter filter) {
  switch (filter) {
    case KeyFilter::all: return true;
    case KeyFilter::open: return row.phase == Phase::open;
    case KeyFilter::half_open: return row.phase == Phase::half_open;
    case KeyFilter::closed: return row.phase == Phase::closed;
    case KeyFilter::slowed: return row.delay > Duration(0);
    case KeyFilter::waiting: return row.held > 0;
  }
  return true;
}

Result<KeyQuery> read_key_query(const AdminRequest& request) {
  KeyQuery query;
  for (const char c : request.parameter("q"))
    query.search += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (!read_word(request.parameter("state"), kFilters, query.filter))
    return Error{"state is one of all, open, half-open, closed, slowed, waiting"};
  if (!read_word(request.parameter("sort"), kSorts, query.sort))
    return Error{
        "sort is one of attention, key, policy, until, level, delay, in_flight, held, requests, "
        "refused"};
  const std::string_view order = request.parameter("order");
  if (!order.empty() && order != "asc" && order != "desc") return Error{"order is asc or desc"};
  query.descending = order == "desc";
  query.after = request.parameter("after");
  if (!query.after.empty() && query.sort != KeySort::key)
    return Error{"after goes with sort=key only"};
  if (const auto text = request.parameter("offset"); !text.empty()) {
    const auto offset = parse_count(text, 1'000'000'000);
    if (!offset) return Error{"offset is a whole number"};
    query.offset = *offset;
  }
  if (const auto text = request.parameter("limit"); !text.empty()) {
    const auto limit = parse_count(text, KeyQuery::kMaxLimit);
    if (!limit) return Error{"limit is a whole number, at most 1000"};
    query.limit = *limit;
  }
  query.history = request.parameter("history") == "1";
  return query;
}

KeySelection select_keys(const std::vector<KeyRow>& rows, const KeyQuery& query) {
  std::vector<const KeyRow*> matching;
  for (const KeyRow& row : rows)
    if (found(row, query)) matching.push_back(&row);
  KeySelection selection;
  selection.matched = matching.size();
  const std::size_t from = std::min(query.offset, matching.size());
  const std::size_t to = std::min(from + query.limit, matching.size());
  const auto before = [&](const KeyRow* a, const KeyRow* b) {
    const auto order = compare(*a, *b, query.sort);
    if (order == std::strong_ordering::equal) return a->key < b->key;
    return query.descending ? order == std::strong_ordering::greater
                            : order == std::strong_ordering::less;
  };
  // Only as much is sorted as is shown.
  const auto at = [&](std::size_t i) { return matching.begin() + static_cast<std::ptrdiff_t>(i); };
  if (from > 0 && from < matching.size()) {
    std::nth_element(matching.begin(), at(from), matching.end(), before);
  }
  std::partial_sort(at(from), at(to), matching.end(), before);
  selection.window.assign(at(from), at(to));
  return selection;
}

}  // namespace sluice
