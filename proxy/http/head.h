// The parsed head of a request or response. Its views lie in the bytes that were read and are good
// until the reader that made it reads on.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "proxy/http/field.h"

namespace sluice {

// How the end of a body is known (RFC 9112 §6.3).
enum class Framing : std::uint8_t { none, length, chunked, until_close };

struct Field {
  std::string_view name, value;
  FieldName id = FieldName::other;
};

struct Head {
  std::string_view method;   // requests; the token as sent
  std::string_view target;   // requests; as sent
  std::uint16_t status = 0;  // responses
  std::string_view phrase;   // responses; may be empty
  std::uint8_t minor = 1;    // HTTP/1.minor, 0 or 1
  Framing framing = Framing::none;
  std::uint64_t length = 0;  // of the body, with Framing::length
  bool close = false;        // the sender ends the connection after this message
  std::vector<Field> fields;

  const Field* find(FieldName id) const {
    for (const Field& field : fields) {
      if (field.id == id) return &field;
    }
    return nullptr;
  }
  // True when a field of that name lists this element.
  bool lists(FieldName id, std::string_view element) const {
    bool found = false;
    for (const Field& field : fields) {
      if (field.id != id) continue;
      for_each_element(field.value, [&](auto e) { found |= equals_ignoring_case(e, element); });
    }
    return found;
  }
};

}  // namespace sluice
