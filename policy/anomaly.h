// What is unusual about the use of one key, and what is to be done about it: bursts against its own
// habit, one URL over and over, errors, hours in which nobody should be there. Decides only; time,
// counts and hours are passed in. Each key's part is small and of a fixed size until something goes
// on. One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/time.h"
#include "policy/usual_rate.h"
#include "policy/working_hours.h"

namespace sluice {

// Values are on disk: never renumber.
enum class AnomalyKind : std::uint8_t { burst = 0, thrash = 1, error_spike = 2, off_hours = 3 };
inline constexpr std::size_t kAnomalyKinds = 4;

// Each does what those before it do. Values are on disk: never renumber.
enum class AnomalyAction : std::uint8_t { alert = 0, throttle = 1, open = 2 };

struct AnomalyRules {
  struct Kind {
    bool enabled = true;
    std::optional<AnomalyAction> action{};  // none: the common one
    bool operator==(const Kind&) const = default;
  };
  struct Burst : Kind {
    unsigned above = 10;   // requests in a minute
    double times = 5;      // what is usual
    Duration learn = 24h;  // a key known for less has no habit yet
    bool operator==(const Burst&) const = default;
  };
  struct Thrash : Kind {
    unsigned above = 3;  // requests for one URL
    Duration within = 5min;
    bool operator==(const Thrash&) const = default;
  };
  struct ErrorSpike : Kind {
    double share = 0.5;  // more than this
    unsigned of = 10;    // the last answers; at most 64
    bool operator==(const ErrorSpike&) const = default;
  };
  struct OffHours : Kind {
    WorkingHours hours;  // none: there are no off-hours
    bool operator==(const OffHours&) const = default;
  };

  bool enabled = true;
  AnomalyAction action = AnomalyAction::alert;
  Duration escalate_after =
      5min;                   // of lasting: "alert" tells once more, "throttle" opens; 0: never
  Duration end_after = 5min;  // of nothing of it
  Duration open_for = 15min;  // and again while it lasts
  Burst burst;
  Thrash thrash;
  ErrorSpike error_spike;
  OffHours off_hours;

  const Kind& of(AnomalyKind kind) const;
  AnomalyAction action_of(AnomalyKind kind) const { return of(kind).action.value_or(action); }
  bool operator==(const AnomalyRules&) const = default;
};

struct OngoingAnomaly {
  AnomalyKind kind = AnomalyKind::burst;
  AnomalyAction action = AnomalyAction::alert;
  Instant since{};
  Instant stepped{};           // when it began, or its action was raised, or it was told again
  Instant seen{};              // the latest request that shows it
  std::uint64_t requests = 0;  // that showed it
  std::uint32_t number = 0;    // the most: in a minute, of one URL, of the last answers
  std::uint32_t usual = 0;     // burst: in a minute
  std::uint64_t url = 0;       // thrash: its fingerprint
  std::string what{};          // thrash: "GET /v1/events"
  bool pardoned = false;       // by an operator: it is watched, and nothing more
  bool operator==(const OngoingAnomaly&) const = default;
};

struct AnomalyNews {
  enum class What : std::uint8_t { began, escalated, lasts, pardoned, ended };
  What what = What::began;
  Instant at{};
  OngoingAnomaly anomaly;
};

// One request that was let through, is waiting, or was refused. What the proxy sends again by
// itself is none.
struct AnomalyAsk {
  Instant now{};
  UtcTime utc{};
  std::uint64_t url = 0;    // 0: not told apart
  std::uint32_t times = 0;  // it was asked for lately, with this time
  std::string_view what{};  // its name; wanted when `times` is above the threshold
  bool refused = false;     // by the proxy: it makes nothing begin, and lets it go on
  bool working_hours = true;
  bool watched_only = false;  // the policy only observes: nothing is done but told
};

class KeyAnomalies {
 public:
  void asked(const AnomalyRules& rules, UsualRate& usual, const AnomalyAsk& ask,
             std::vector<AnomalyNews>& out);
  // The first answer to a request, or that there was none.
  void answered(const AnomalyRules& rules, const UsualRate& usual, const AnomalyAsk& ask,
                bool error, std::vector<AnomalyNews>& out);
  // Raises the actions of what lasts, or tells of it once more; ends what is over. To be called
  // about once a second while something goes on.
  void tick(const AnomalyRules& rules, const UsualRate& usual, const AnomalyAsk& clock,
            std::vector<AnomalyNews>& out);

  // An operator lets the key's requests through: what goes on may do so.
  void pardon(Instant now, std::vector<AnomalyNews>& out);

  const std::vector<OngoingAnomaly>& going_on() const { return going_on_; }
  bool does(AnomalyAction action) const;  // or more
  // A request for this URL shows that a loop goes on, even when it is refused.
  bool follows(std::uint64_t url) const;

  // Half the pace: between two requests. 0: it is not in force.
  Duration spacing() const { return spacing_; }
  Instant next_at() const { return next_at_; }  // the next one may not go before
  void went(Instant now) { next_at_ = now + spacing_; }

 private:
  // Requests by five seconds: those of the last 55 s to a minute.
  struct Minute {
    std::array<std::uint16_t, 12> counts{};
    std::int64_t slot = 0;
    void move(Instant now);
    void add(Instant now);
    std::uint32_t sum() const;
  };
  struct Sign {
    AnomalyKind kind;
    std::uint32_t number = 0, usual = 0;
  };

  const OngoingAnomaly* find(AnomalyKind kind) const;
  void show(const AnomalyRules& rules, const Sign& sign, const UsualRate& usual,
            const AnomalyAsk& ask, std::vector<AnomalyNews>& out);
  void set_pace(const UsualRate& usual, const AnomalyAsk& ask);

  Minute minute_;
  std::uint64_t errors_ = 0;  // the last answers, a bit each, the latest the lowest
  std::uint32_t answers_ = 0;
  Instant answered_at_{};
  std::vector<OngoingAnomaly> going_on_;  // at most one of each kind
  Duration spacing_{};
  Instant next_at_{};
};

// "burst", "thrash", "error-spike", "off-hours"
std::string_view anomaly_word(AnomalyKind kind);
// "alert", "throttle", "open"
std::string_view action_word(AnomalyAction action);

}  // namespace sluice
