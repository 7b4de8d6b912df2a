#include "store/notice.h"

#include <utility>

namespace sluice {

void append_once(Store& store, std::string_view name, std::string state, const Event& event,
                 Completion done) {
  store.update(
      std::string(kNoticePrefix).append(name),
      [state = std::move(state)](std::optional<std::string_view> current) {
        if (current && *current == state) return Change{};
        return Change{Change::Kind::put, state, 1};
      },
      Completion{{},
                 [&store, event, done = std::move(done)](Result<std::uint64_t> changed) mutable {
                   if (!changed || *changed == 0) return complete(done, std::move(changed));
                   store.append(event, Completion{{}, [done](Result<std::uint64_t> added) mutable {
                                                    complete(done, added ? Result<std::uint64_t>(1)
                                                                         : std::move(added));
                                                  }});
                 }});
}

}  // namespace sluice
