#include "policy/zone.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>

namespace sluice {
namespace {

constexpr std::size_t kHeader = 44;
constexpr std::size_t kMostChanges = 10'000;
// For which a rule is written out.
constexpr int kFirstYear = 1970, kLastYear = 2100;

// Big-endian, as the file is.
std::int64_t number(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  if (size == 4) return static_cast<std::int32_t>(value);
  return static_cast<std::int64_t>(value);
}

// RFC 9636 §3.1
struct Counts {
  std::size_t utc, standard, leap, time, type, chars;
  std::size_t size(std::size_t width) const {
    return time * (width + 1) + type * 6 + chars + leap * (width + 4) + standard + utc;
  }
};

std::optional<Counts> read_header(std::string_view bytes) {
  if (bytes.size() < kHeader || !bytes.starts_with("TZif") || bytes[4] < '2') return std::nullopt;
  std::size_t n[6];
  for (std::size_t i = 0; i < 6; ++i) {
    const std::int64_t count = number(bytes, 20 + 4 * i, 4);
    if (count < 0 || count > static_cast<std::int64_t>(kMostChanges)) return std::nullopt;
    n[i] = static_cast<std::size_t>(count);
  }
  const Counts counts{n[0], n[1], n[2], n[3], n[4], n[5]};
  return counts.type == 0 ? std::nullopt : std::optional(counts);
}

std::chrono::year_month_day date_of(std::int64_t day) {
  return std::chrono::year_month_day(std::chrono::sys_days(std::chrono::days(day)));
}

std::int64_t day_number(std::chrono::year_month_day date) {
  return std::chrono::sys_days(date).time_since_epoch().count();
}

// RFC 9636 §3.3: the footer is one line, with a line end on either side.
std::string_view between_line_ends(std::string_view footer) {
  if (footer.starts_with('\n')) footer.remove_prefix(1);
  return footer.substr(0, footer.find('\n'));
}

// The days that have begun by the wall clock.
std::int64_t local_day(const Zone& zone, Duration reset, UtcTime moment) {
  const Duration local = moment.time_since_epoch() + zone.offset(moment) - reset;
  return std::chrono::floor<std::chrono::days>(local).count();
}

UtcTime start_of(const Zone& zone, Duration reset, std::int64_t day) {
  return zone.when(std::chrono::days(day) + reset);
}

}  // namespace

Result<Zone> Zone::parse(std::string_view tzif) {
  const Error unreadable{"it is no time zone file of version 2 or later"};
  const auto old = read_header(tzif);
  if (!old || tzif.size() < kHeader + old->size(4)) return unreadable;
  tzif.remove_prefix(kHeader + old->size(4));  // the same again, in 32 bits
  const auto counts = read_header(tzif);
  if (!counts || tzif.size() < kHeader + counts->size(8)) return unreadable;
  const std::size_t times = kHeader, types = times + counts->time * 8;
  const std::size_t kinds = types + counts->time;
  const auto offset_of = [&](std::size_t type) {
    return std::chrono::seconds(number(tzif, kinds + type * 6, 4));
  };
  Zone zone;
  zone.first_ = offset_of(0);
  for (std::size_t i = 0; i < counts->time; ++i) {
    const auto type = static_cast<unsigned char>(tzif[types + i]);
    const std::int64_t at = number(tzif, times + i * 8, 8);
    if (type >= counts->type) return unreadable;
    constexpr std::int64_t kFar = 1'000'000'000'000;  // seconds; sums of it fit
    if (at < -kFar || at > kFar) continue;
    zone.changes_.push_back({UtcTime{std::chrono::seconds(at)}, offset_of(type)});
  }
  const std::string_view footer = tzif.substr(kHeader + counts->size(8));
  if (footer.find(',') == std::string_view::npos) return zone;  // no summer time from then on
  const auto rule = parse_zone_rule(between_line_ends(footer));
  if (!rule) return Error{"the rule for its summer time cannot be read"};
  zone.extend(*rule);
  return zone;
}

void Zone::extend(const ZoneRule& rule) {
  const bool listed = !changes_.empty();
  const UtcTime known = listed ? changes_.back().at : UtcTime::min();
  const int first =
      listed ? int{date_of(std::chrono::floor<std::chrono::days>(known.time_since_epoch()).count())
                       .year()}
             : kFirstYear;
  for (int year = first; year <= kLastYear; ++year) {
    for (const ZoneChange& change : rule.changes(year)) {
      if (change.at > known) changes_.push_back(change);
    }
  }
}

Duration Zone::offset(UtcTime moment) const {
  const auto next =
      std::upper_bound(changes_.begin(), changes_.end(), moment,
                       [](UtcTime t, const ZoneChange& change) { return t < change.at; });
  return next == changes_.begin() ? first_ : std::prev(next)->offset;
}

UtcTime Zone::when(Duration local) const {
  // An offset is less than a day: the right one is in force a day before, a day after, or at a
  // change in between.
  const UtcTime about{local};
  UtcTime found = about + 24h;
  bool exists = false;
  for (const Duration candidate : {offset(about - 24h), offset(about), offset(about + 24h)}) {
    const UtcTime moment = about - candidate;
    if (offset(moment) != candidate) continue;
    found = exists ? std::min(found, moment) : moment;
    exists = true;
  }
  if (exists) return found;
  // Skipped: the change that skips it.
  for (const ZoneChange& change : changes_) {
    if (change.at + change.offset > about) return change.at;
  }
  return about;
}

Span day_of(const Zone& zone, Duration reset, UtcTime moment) {
  std::int64_t day = local_day(zone, reset, moment);
  // A time that comes twice counts from its first, a skipped one from the jump.
  while (start_of(zone, reset, day) > moment) --day;
  while (start_of(zone, reset, day + 1) <= moment) ++day;
  const auto date = date_of(day);
  char name[16];
  std::snprintf(name, sizeof name, "%04d-%02u-%02u", int{date.year()}, unsigned{date.month()},
                unsigned{date.day()});
  return {start_of(zone, reset, day), start_of(zone, reset, day + 1), name};
}

Span month_of(const Zone& zone, Duration reset, UtcTime moment) {
  const Span day = day_of(zone, reset, moment);
  const auto date = date_of(local_day(zone, reset, day.from));
  const auto first = date.year() / date.month() / 1;
  const auto next = first + std::chrono::months(1);
  char name[16];
  std::snprintf(name, sizeof name, "%04d-%02u", int{date.year()}, unsigned{date.month()});
  return {start_of(zone, reset, day_number(first)), start_of(zone, reset, day_number(next)), name};
}

}  // namespace sluice
