#include "proxy/robots/robots_desk.h"

#include <algorithm>
#include <utility>

namespace sluice {

RobotsRef RobotsDesk::find(const std::string& origin, Instant now) {
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(origin);
  return found != kept_.end() && now < found->second.until ? found->second.file : nullptr;
}

RobotsDesk::Asked RobotsDesk::want(const std::string& origin, Mailbox& mailbox, Callback callback) {
  auto shared = std::make_shared<Callback>(std::move(callback));
  const std::lock_guard lock(mutex_);
  const auto [place, first] = waiting_.try_emplace(origin);
  place->second.push_back({&mailbox, shared});
  return {Handle(std::move(shared)), first};
}

void RobotsDesk::learned(const std::string& origin, RobotsFile file, Instant now, Instant until) {
  const auto known = std::make_shared<const RobotsFile>(std::move(file));
  std::vector<Waiting> told;
  {
    const std::lock_guard lock(mutex_);
    if (kept_.size() >= capacity_) {
      std::erase_if(kept_, [now](const auto& entry) { return entry.second.until <= now; });
    }
    if (kept_.size() >= capacity_) {
      kept_.erase(std::min_element(kept_.begin(), kept_.end(), [](const auto& a, const auto& b) {
        return a.second.until < b.second.until;
      }));
    }
    kept_[origin] = {known, until};
    if (auto waited = waiting_.extract(origin)) told = std::move(waited.mapped());
  }
  for (const Waiting& waiting : told) {
    waiting.mailbox->post([callback = waiting.callback, known] {
      if (const Callback run = std::exchange(*callback, nullptr)) run(known);
    });
  }
}

}  // namespace sluice
