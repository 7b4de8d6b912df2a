// Writes the heads that leave the proxy. Nothing is copied through: every line is rebuilt from the
// parsed form, so what two parsers could read differently cannot get out. Pure.
#pragma once

#include <string>
#include <string_view>

#include "proxy/http/head.h"
#include "proxy/http/target.h"

namespace sluice {

// Appends the request for the origin. `via` is our own entry, such as "1.1 sluice-1f2e".
// `upgrade`: the client may switch protocols, so Upgrade goes along.
void write_request(std::string& out, const Head& head, const Target& target, std::string_view via,
                   bool upgrade);

struct ResponsePlan {
  Framing framing = Framing::none;  // towards the client
  bool close = false;               // the client connection ends after this response
  bool keep_alive_told = false;     // an HTTP/1.0 client must be told that it stays
  bool upgrade = false;             // 101: Connection and Upgrade go along
};

// Appends the response for the client. `date` is used when the origin gave none.
void write_response(std::string& out, const Head& head, const ResponsePlan& plan,
                    std::string_view via, std::string_view date);

// True if the request asks for another protocol that may be relayed: HTTP/2 over clear text may
// not, since it would carry requests past every check (RFC 9110 §7.8).
bool wants_upgrade(const Head& head);

// RFC 9110 §7.6.2: TRACE and OPTIONS count down; 0 means the answer is ours. Negative: no such
// field.
int max_forwards(const Head& head);

}  // namespace sluice
