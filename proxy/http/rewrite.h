// Writes the heads that leave the proxy. Nothing is copied through: every line is rebuilt from the
// parsed form, so what two parsers could read differently cannot get out. Pure.
#pragma once

#include <string>
#include <string_view>

#include "proxy/http/head.h"
#include "proxy/http/target.h"

namespace sluice {

// Appends the request for the origin. `name` is ours, for Via.
// `upgrade`: the client may switch protocols, so Upgrade goes along.
void write_request(std::string& out, const Head& head, const Target& target, std::string_view name,
                   bool upgrade);

struct ResponsePlan {
  Framing framing = Framing::none;  // towards the client
  bool close = false;               // the client connection ends after this response
  bool upgrade = false;             // 101 and 426: Connection and Upgrade go along
};

// Appends the response for the client. `date` is used when the origin gave none.
void write_response(std::string& out, const Head& head, const ResponsePlan& plan,
                    std::string_view name, std::string_view date);

// True if the request asks for another protocol that may be relayed: HTTP/2 over clear text may
// not, since it would carry requests past every check (RFC 9110 §7.8).
bool wants_upgrade(const Head& head);

// The elements of all Upgrade fields.
std::string offered_protocols(const Head& request);

// RFC 9110 §7.8: a server switches to nothing that the client has not offered.
bool switches_as_asked(const Head& response, std::string_view offered);

// RFC 9110 §7.6.2: TRACE and OPTIONS count down; 0 means the answer is ours. Negative: no such
// field, or none that is a number. One beyond what we count to is taken for the most we do.
int max_forwards(const Head& head);
// False: it is there twice, and whose count holds is anyone's guess.
bool has_valid_max_forwards(const Head& head);

}  // namespace sluice
