#include "store/open.h"

#include "store/memory.h"

namespace sluice {

namespace {
constexpr std::string_view kLmdb = "lmdb:";
}

std::string store_directory(std::string_view url, const std::string& state_directory) {
  if (!url.starts_with(kLmdb)) return {};
  return url.size() > kLmdb.size() ? std::string(url.substr(kLmdb.size())) : state_directory;
}

Result<OpenedStore> open_store(std::string_view url, const std::string& state_directory,
                               UtcTime now) {
  if (url == "memory:") return OpenedStore{std::make_unique<MemoryStore>(), {}};
  if (!url.starts_with(kLmdb))
    return Error{"store.url is \"" + std::string(url) + "\", but must begin with \"lmdb:\""};
  LmdbOptions options;
  options.directory = store_directory(url, state_directory);
  options.now = now;
  return LmdbStore::open(options);
}

}  // namespace sluice
