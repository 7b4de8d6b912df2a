// A request to the admin side as a value: copied out of the reader's bytes, split and decoded once.
// Pure. Nothing in it is trusted before guard.h has looked at it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "policy/result.h"
#include "proxy/http/head.h"

namespace sluice {

struct AdminRequest {
  std::string method;
  std::string path;  // as sent: percent-decoding a segment is up to who takes it
  std::map<std::string, std::string, std::less<>> query;
  std::string host;             // the Host field; empty: none
  std::string origin;           // empty: none
  std::string fetch_site;       // Sec-Fetch-Site; empty: none
  std::string authorization;    // as sent
  std::string content_type;     // without parameters, lower case
  std::string last_event_id;    // of a stream that was cut
  bool wants_stream = false;    // Accept: text/event-stream
  std::size_t host_fields = 0;  // how often Host was there
  std::string body;

  bool head_only() const { return method == "HEAD"; }
  std::string_view parameter(std::string_view name) const;  // empty: not given
};

// The target must be a path of our own; an absolute form is a mistaken proxy request.
Result<AdminRequest> admin_request(const Head& head);

// RFC 3986 §2.1; none: a broken escape, or a control character behind one.
std::optional<std::string> percent_decode(std::string_view text);
std::string percent_encode(std::string_view text);  // everything but unreserved characters

}  // namespace sluice
