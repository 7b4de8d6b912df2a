// From the words of `store.url` to an open store. The one place that knows all engines.
#pragma once

#include <string>
#include <string_view>

#include "policy/result.h"
#include "policy/time.h"
#include "store/lmdb.h"

namespace sluice {

// Where its files are; empty: it has none.
std::string store_directory(std::string_view url, const std::string& state_directory);

// `lmdb:` is the state directory, `lmdb:/some/path` another one, `memory:` forgets at the end.
Result<OpenedStore> open_store(std::string_view url, const std::string& state_directory,
                               UtcTime now);

}  // namespace sluice
