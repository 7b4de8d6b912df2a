// Which requests are still waited for. What an answer would teach decides who goes next, but one
// that takes long, a stream or a long poll, must not stop everybody else: after a while it counts
// no more.
#include <algorithm>

#include "policy/pace_models.h"

namespace sluice::pace {
namespace {

// An answer that takes longer than this is not waited for.
Duration patience(const PaceFlight& flight) { return std::max<Duration>(1s, 4 * flight.latency); }

bool older_count(const PaceFlight& flight, Instant now) {
  return flight.undecided.older > 0 && now < flight.undecided.turned + patience(flight);
}

bool newer_count(const PaceFlight& flight, Instant now) {
  return flight.undecided.newer > 0 && now < flight.last_sent + patience(flight);
}

}  // namespace

std::uint32_t undecided(const PaceFlight& flight, Instant now) {
  return (older_count(flight, now) ? flight.undecided.older : 0) +
         (newer_count(flight, now) ? flight.undecided.newer : 0);
}

bool is_probing(const PaceFlight& flight, Instant now) {
  return flight.incident.probing != 0 && now < flight.incident.probed + patience(flight);
}

void note_sent(PaceFlight& flight, Instant now) {
  PaceUndecided& undecided = flight.undecided;
  if (!older_count(flight, now)) {
    undecided = {.older = undecided.newer,
                 .given_up = undecided.turn,
                 .turn = flight.sent,
                 .turned = flight.last_sent};
  }
  ++undecided.newer;
}

void note_decided(PaceFlight& flight, PaceTicket& ticket) {
  if (ticket.decided) return;
  ticket.decided = true;
  PaceUndecided& undecided = flight.undecided;
  std::uint32_t none = 0;
  std::uint32_t& count = ticket.ordinal > undecided.turn       ? undecided.newer
                         : ticket.ordinal > undecided.given_up ? undecided.older
                                                               : none;
  if (count > 0) --count;
  PaceIncident& incident = flight.incident;
  if (ticket.probe && incident.probing == ticket.ordinal) incident.probing = 0;
}

}  // namespace sluice::pace

namespace sluice {

Instant pace_gives_up(const PaceState& state, Instant now) {
  using namespace pace;
  const PaceFlight& flight = state.flight;
  Instant at = Instant::max();
  const auto missing = [&](bool counts, Instant sent) {
    if (counts) at = std::min(at, sent + patience(flight));
  };
  missing(older_count(flight, now), flight.undecided.turned);
  missing(newer_count(flight, now), flight.last_sent);
  missing(is_probing(flight, now), flight.incident.probed);
  return at;
}

}  // namespace sluice
