// All keys as they were a moment ago, for whoever sorts, searches, counts or charts them: one copy,
// taken in pages, so that the proxy is never held up by a walk over 100,000 keys. A copy that took
// long is kept longer, so that no number of questions costs more than a tenth of a core. Admin
// thread only.
#pragma once

#include <string>
#include <vector>

#include "proxy/admin/source.h"

namespace sluice {

class KeyTable {
 public:
  static constexpr std::size_t kPage = 1000;
  static constexpr Duration kFresh = 1s;

  explicit KeyTable(AdminSource& source) : source_(source) {}

  // In order of their keys. Good until the next call.
  const std::vector<KeyRow>& rows();
  const std::string& problem() const { return problem_; }  // why they are not all there; or empty
  void expire() { due_ = {}; }  // something changed that somebody waits to see

 private:
  void copy();

  AdminSource& source_;
  std::vector<KeyRow> rows_;
  std::string problem_;
  Instant due_{};
};

// Requests that went to the origin, however they ended.
std::uint64_t sent(const Counts& counts);

}  // namespace sluice
