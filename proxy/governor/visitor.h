// What a gate says of one request, and a request that waits for it to say so. Plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "policy/breaker.h"
#include "policy/pacer.h"
#include "proxy/governor/admission.h"
#include "proxy/governor/allowances.h"

namespace sluice {

// What would be done with a request, were its policy to do more than observe.
enum class Foreseen : std::uint8_t { forward, wait, refuse };

// What the breaker, the pacer and the allowances say together.
struct GatePass {
  // Who refuses or holds.
  enum class By : std::uint8_t { key, limit, budget, price, store };

  Decision::Act act = Decision::Act::forward;
  Instant until{};
  Ticket ticket{};
  PaceTicket pace{};
  By by = By::key;
  std::string why{};  // one sentence; by the key itself, its state says it
  Allowance taken{};  // of one that goes
  Foreseen foreseen = Foreseen::forward;
};

// A request that waits, shared by its gate and the exchange.
struct Visitor {
  Mailbox& mailbox;
  Asker* asker;  // null: it has left. Touched on the mailbox's loop only
  std::shared_ptr<Gate> gate{};
  Journey journey{};
  std::uint64_t id = 0;  // in the gate's queue
};

}  // namespace sluice
