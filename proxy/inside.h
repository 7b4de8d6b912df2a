// The inside of a tunnel that Sluice looks into: where CONNECT went, and what a request in there
// asks for. Pure; the views of a target lie in the request's own bytes or in the Inside.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "proxy/http/head.h"
#include "proxy/http/target.h"
#include "proxy/refusal.h"

namespace sluice {

struct Inside {
  std::string host;  // lower case, without brackets
  std::uint16_t port = 443;
  std::string authority;  // as CONNECT wrote it
  bool secure = true;     // the client speaks TLS in there
  bool ours = false;      // no tunnel: a client of our own, for robots.txt
};

struct InsideTarget {
  Target target;
  std::optional<Refusal> refusal;  // then the target is of no use
};

// Host and an absolute target must name the place where CONNECT went (RFC 9110 §7.4).
InsideTarget inside_target(const Inside& inside, const Head& request);

}  // namespace sluice
