// Authentication that holds for a connection instead of a request: NTLM, Negotiate and Kerberos
// (RFC 4559 §6). A connection that carries it is its client's alone: whoever else used it would be
// taken for that client. Pure.
#pragma once

#include "proxy/http/head.h"

namespace sluice {

// By Authorization of a request, or by WWW-Authenticate of a response.
bool authenticates_connection(const Head& head);

}  // namespace sluice
