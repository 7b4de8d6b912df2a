#include "proxy/http/connection_auth.h"

#include <algorithm>

namespace sluice {

bool authenticates_connection(const Head& head) {
  return std::any_of(head.fields.begin(), head.fields.end(), [](const Field& field) {
    if (field.id != FieldName::authorization && field.id != FieldName::www_authenticate)
      return false;
    bool found = false;
    for_each_element(field.value, [&](std::string_view challenge) {
      const auto scheme = challenge.substr(0, challenge.find(' '));
      for (const std::string_view known : {"ntlm", "negotiate", "kerberos"})
        found |= equals_ignoring_case(scheme, known);
    });
    return found;
  });
}

}  // namespace sluice
