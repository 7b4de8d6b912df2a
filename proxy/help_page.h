// What the proxy says to those who talk to it as if it were a web server, and the few answers it
// gives in an origin's place (TRACE and OPTIONS that may go no further).
#pragma once

#include <string>
#include <string_view>

#include "proxy/http/head.h"
#include "proxy/refusal.h"

namespace sluice {

std::string help_page(std::string_view listen);
std::string traced(const Head& request);  // RFC 9110 §9.3.8: without what could be a secret
std::string local_reply(std::string_view body, std::string_view type, const ReplyOptions& options);

}  // namespace sluice
