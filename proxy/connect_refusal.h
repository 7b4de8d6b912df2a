// What a client is told when no connection to an origin came about, and whether that speaks against
// the origin. Pure; any thread.
#pragma once

#include "policy/outcome.h"
#include "proxy/net/dialer.h"
#include "proxy/refusal.h"

namespace sluice {

Refusal connect_refusal(const Connected& failed);
OutcomeKind blame(ConnectError error);

}  // namespace sluice
