#include "proxy/job_name.h"

#include <algorithm>

namespace sluice {
namespace {

bool stays(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-' || c == '@' || c == '+';
}

}  // namespace

std::string job_name(std::string_view written) {
  std::string name(written.substr(0, kJobNameLimit));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !stays(c); }, '_');
  return name;
}

}  // namespace sluice
