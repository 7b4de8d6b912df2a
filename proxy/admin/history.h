// The last hour by the minute, of everything together and of the keys with the most traffic: what
// the page draws. Bounded: kKeys rings of kMinutes. Remembers nothing across a restart, decides
// nothing. Admin thread only.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/admin/source.h"
#include "proxy/net/host_name.h"

namespace sluice {

class History {
 public:
  static constexpr std::size_t kMinutes = 60;
  static constexpr std::size_t kKeys = 2000;

  // Of one minute each, oldest first; the last one is still running. Shorter when less is known.
  struct Series {
    std::vector<std::uint32_t> requests;  // sent to the origin
    std::vector<std::uint32_t> refused;   // by us
    std::vector<std::uint32_t> limited;   // by the origin: rate limits and blocks
    std::vector<std::uint32_t> delay_ms;
  };

  // Call once a minute.
  void sample(const std::vector<KeyRow>& rows, const Totals& totals);

  Series of(const KeyRow& row) const;
  Series of_all(const Totals& totals) const;

 private:
  struct Minute {
    std::uint32_t requests = 0, refused = 0, limited = 0, delay_ms = 0;
  };
  struct Mark {  // counters at the last sample
    std::uint64_t requests = 0, refused = 0, limited = 0;
  };
  struct Ring {
    Mark mark;
    std::array<Minute, kMinutes> minutes{};
    std::size_t next = 0, size = 0;
    std::uint64_t round = 0;  // the sample it was last part of
    void push(const Minute& minute);
  };

  static Mark mark_of(const Counts& counts);
  static Minute since(const Mark& before, const Mark& now, Duration delay);
  static Series unroll(const Ring& ring, const Minute& running);

  Ring all_;
  NameMap<Ring> rings_;
  std::uint64_t round_ = 0;
  bool complete_ = false;  // the last sample had every key: one without a ring is new
};

}  // namespace sluice
