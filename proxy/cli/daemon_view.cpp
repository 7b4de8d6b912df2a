#include "proxy/cli/daemon_view.h"

#include <nlohmann/json.hpp>

#include "proxy/admin/client.h"

namespace sluice {
namespace {

constexpr Duration kPatience = 1s;

}  // namespace

// The busiest are enough: whoever is not among them has nothing going on.
DaemonView::DaemonView(const std::string& state_directory) {
  const AdminClient client(state_directory, kPatience);
  for (const char* sort : {"in_flight", "held"}) {
    const auto answer = client.read("/api/keys?order=desc&limit=1000&sort=" + std::string(sort));
    answers_ = answer && answer->contains("keys");
    if (!answers_) return;
    for (const auto& key : (*answer)["keys"]) {
      busy_[key.value("key", "")] = {key.value("in_flight", std::uint64_t{0}),
                                     key.value("held", std::uint64_t{0})};
    }
  }
}

std::optional<DaemonView::Busy> DaemonView::of(const std::string& key) const {
  if (!answers_) return std::nullopt;
  const auto found = busy_.find(key);
  return found == busy_.end() ? Busy{} : found->second;
}

}  // namespace sluice
