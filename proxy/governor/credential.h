// Who is asking, as a key may show it: a salted hash of the headers that a policy names. The
// credential itself is never kept. Pure but for the salt, which is made once per store.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/head.h"
#include "store/store.h"

namespace sluice {

// 16 hex digits; empty when the request carries none of the headers.
std::string credential_hash(std::string_view salt, const std::vector<std::string>& headers,
                            const Head& request);

// The store's salt, made on first need. A store that cannot keep one gets one for this run.
std::string load_salt(Store& store);

}  // namespace sluice
