// Who may ask the admin side for what. Pure: decides by the request, by how it came in and by the
// token. Browsers are the danger: a page from anywhere can make them send requests to loopback, and
// a name server can make any name mean loopback. So the Host must be an address, never a name but
// localhost; an Origin must be our own page's; and nothing is allowed by a cookie, because a cookie
// of 127.0.0.1 goes to every port of it.
#pragma once

#include <optional>
#include <string_view>

#include "proxy/admin/reply.h"
#include "proxy/admin/request.h"
#include "proxy/net/address.h"

namespace sluice {

// How a request came in.
struct AdminPeer {
  bool unix_socket = false;  // the kernel said it is our own user: no token asked
  Address local;             // which of our addresses it reached
};

// What stands in the way, or nothing.
std::optional<AdminReply> objection(const AdminRequest& request, const AdminPeer& peer,
                                    std::string_view token);

// All but the probes, the metrics and the files of the page: those hold no data, and a browser
// cannot send a token when it opens a page.
bool needs_token(std::string_view path);

}  // namespace sluice
