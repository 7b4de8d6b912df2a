// Two processes changed what is known about one key since both had read the same: what comes of it.
// A pure function. What only one of them changed is as that one says; where both did, what allows
// less, and never less than the newer word of an operator who cleared the key.
#pragma once

#include "policy/host_state.h"

namespace sluice {

// `base`: as both had read it. `ours`: what this process made of it. `stored`: what the other one
// wrote. The result has the version of `stored` and is to be written again if it is not the same.
HostState merged(const HostState& base, HostState ours, HostState stored);

// Ours with the breaker of `stored`, which has shut the key since: what has been counted and
// learned here stays, for a merge that is to come.
HostState shut_as(const HostState& ours, HostState stored);

}  // namespace sluice
