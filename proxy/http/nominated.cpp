#include "proxy/http/nominated.h"

#include <algorithm>

namespace sluice {
namespace {

bool less_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [&](char x, char y) { return lower(x) < lower(y); });
}

// Names that would break routing or framing are not obeyed; hop-by-hop fields go in any case.
bool is_obeyed(std::string_view name) {
  switch (const FieldName id = field_name(name)) {
    case FieldName::content_length:
    case FieldName::host:
    case FieldName::max_forwards:
    case FieldName::trailer:
    case FieldName::via: return false;
    case FieldName::other: return !equals_ignoring_case(name, "close");
    default: return !is_hop_by_hop(id);
  }
}

}  // namespace

Nominated::Nominated(const Head& head) {
  for (const Field& field : head.fields) {
    if (field.id != FieldName::connection) continue;
    for_each_element(field.value, [&](std::string_view name) {
      if (is_obeyed(name)) names_.push_back(name);
    });
  }
  if (names_.size() > 1) std::sort(names_.begin(), names_.end(), less_ignoring_case);
}

bool Nominated::find(std::string_view name) const {
  return std::binary_search(names_.begin(), names_.end(), name, less_ignoring_case);
}

bool is_among(const std::vector<std::string>& names, std::string_view name) {
  return !names.empty() && std::binary_search(names.begin(), names.end(), name, less_ignoring_case);
}

}  // namespace sluice
