// What requests have cost, for reports: adds up by policy, host and job in memory and writes that
// down about once a second. A crash loses the last second of the report, and nothing of the budget,
// which is kept elsewhere. Any thread; a lock is held for as long as adding takes. Bounded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "policy/cost.h"
#include "policy/zone.h"
#include "store/store.h"

namespace sluice {

inline constexpr std::array<std::string_view, 3> kCostKinds = {"policy", "host", "job"};

enum class CostTerm : std::uint8_t { day, month };
// "day/2026-03-12/host"
std::string cost_record_name(CostTerm term, const Span& span, std::string_view kind);

class CostBook {
 public:
  static constexpr std::size_t kMaxNames = 1000;  // of a kind, between two flushes

  struct Entry {
    std::string_view policy, host, job;  // no job: empty
    Micros spent = 0;
  };

  // The store must outlive the book and every write it has begun.
  CostBook(Store& store, Duration reset, Zone zone);
  ~CostBook();
  CostBook(const CostBook&) = delete;
  CostBook& operator=(const CostBook&) = delete;

  // `when` it was sent says which day it belongs to.
  void add(const Entry& entry, UtcTime when);
  void flush();

 private:
  class Pages;
  std::shared_ptr<Pages> pages_;  // shared with writes under way
};

}  // namespace sluice
