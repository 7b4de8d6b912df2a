// A limit on how many are at the origin at once.
#include <algorithm>

#include "policy/pace_models.h"

namespace sluice::pace {
namespace {

constexpr std::uint32_t patience = 1024;      // successes before one more is tried
constexpr std::uint32_t least_patience = 64;  // where the limit is known to move
constexpr std::uint32_t most_patience = 1 << 20;

}  // namespace

void limit_places(PaceState& state, std::uint32_t places) {
  PaceMemory& learned = state.learned;
  PaceFlight& flight = state.flight;
  learned.model = PaceModel::none;
  learned.cap = std::max(1u, places);
  learned.cap_patience = std::max(patience, 2 * learned.cap_patience);
  learned.known = true;
  flight.crowded = std::min(flight.crowded, learned.cap);
  flight.crowded_times = 0;
  flight.not_places = false;
  flight.raising = false;
  flight.gentle = 0;
  flight.incident = {};
}

bool places_fell(PaceState& state, const PaceTicket& ticket) {
  PaceMemory& learned = state.learned;
  const PaceFlight& flight = state.flight;
  // Of those that go together nobody knows in which order they come.
  const bool alone = std::max(ticket.crowd, flight.in_flight) < 2;
  if (learned.cap < 2 || learned.model != PaceModel::none || alone) return false;
  // Either one more was one too many, or the limit moves, and then one more is tried soon.
  const std::uint32_t again = flight.raising ? 4 * learned.cap_patience : least_patience;
  limit_places(state, learned.cap - 1);
  learned.cap_patience = std::min(again, most_patience);
  return true;
}

void try_one_more(PaceState& state) {
  PaceMemory& learned = state.learned;
  PaceFlight& flight = state.flight;
  if (learned.cap == 0 || ++flight.at_cap < learned.cap_patience) return;
  // If that is fine, there may be many more; if it is not, four times as many successes are needed.
  learned.cap_patience = std::max(least_patience, learned.cap_patience / 2);
  ++learned.cap;
  flight.raising = true;
  flight.at_cap = 0;
}

}  // namespace sluice::pace
