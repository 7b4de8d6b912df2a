#include "unit/policy/lab/fleet.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <queue>

#include "policy/fair_queue.h"

namespace sluice::lab {
namespace {

constexpr double epoch = 1773309570.0;  // of the simulation's second 0

std::string ceiled(double seconds) {
  return std::to_string(static_cast<long long>(std::ceil(seconds - 1e-9)));
}

std::string http_date(double utc) {
  constexpr const char* days[] = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"};
  constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto whole = static_cast<long long>(std::floor(utc));
  const std::chrono::sys_days day{std::chrono::days(whole / 86400)};
  const std::chrono::year_month_day date{day};
  const auto rest = whole % 86400;
  char text[64];
  std::snprintf(text, sizeof text, "%s, %02u %s %04d %02d:%02d:%02d GMT", days[(whole / 86400) % 7],
                static_cast<unsigned>(date.day()), months[static_cast<unsigned>(date.month()) - 1],
                static_cast<int>(date.year()), static_cast<int>(rest / 3600),
                static_cast<int>(rest / 60 % 60), static_cast<int>(rest % 60));
  return text;
}

struct Field {
  std::string name, value;
};

// The fields that an origin of that style puts on its answer, `utc` being its own clock.
std::vector<Field> announce(const Profile& profile, const Verdict& verdict, double utc) {
  std::vector<Field> fields{{"Date", http_date(utc)}};
  const auto add = [&](const char* name, std::string value) {
    fields.push_back({name, std::move(value)});
  };
  switch (profile.style) {
    case Style::retry_seconds:
      if (!verdict.ok) add("Retry-After", ceiled(verdict.retry));
      break;
    case Style::retry_date:
      if (!verdict.ok) add("Retry-After", http_date(std::ceil(utc + verdict.retry)));
      break;
    case Style::ietf:
      add("RateLimit-Limit", std::to_string(verdict.limit));
      add("RateLimit-Policy", profile.policy);
      add("RateLimit-Remaining", std::to_string(verdict.remaining));
      add("RateLimit-Reset", ceiled(verdict.reset));
      break;
    case Style::github:
    case Style::github403:
      add("x-ratelimit-limit", std::to_string(verdict.limit));
      add("x-ratelimit-remaining", std::to_string(verdict.remaining));
      add("x-ratelimit-reset", ceiled(utc + verdict.reset));
      break;
    case Style::openai:
      add("x-ratelimit-limit-requests", std::to_string(verdict.limit));
      add("x-ratelimit-remaining-requests", std::to_string(verdict.remaining));
      add("x-ratelimit-reset-requests", ceiled(verdict.reset * 1000) + "ms");
      break;
    case Style::silent:
    case Style::bot_page: break;
  }
  return fields;
}

std::uint64_t scramble(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

Rules lab_rules() {
  Rules rules;
  rules.breaker.cooldown = {2s, 4s, 8s, 16s};
  rules.breaker.antibot_cooldown = {6s, 12s, 24s};
  rules.breaker.retry_after_cap = 30s;
  rules.breaker.decay = 60s;
  rules.breaker.probe_timeout = 3s;
  rules.hold.max_wait = 60s;
  rules.retry.max = 5;
  return rules;
}

Fleet::Fleet(Rules rules, Profile profile, Options options)
    : rules_(std::move(rules)),
      profile_(std::move(profile)),
      options_(options),
      classifier_(*Classifier::make(rules_.classify, builtin_body_markers())),
      random_(options.seed * 0x9e3779b97f4a7c15) {
  now_ += static_cast<double>(scramble(random_) % 1000) / 1000;  // any part of a second
}

Instant Fleet::now() const { return Instant(Duration(std::llround(now_ * 1e6))); }

void Fleet::restart() { pace_ = pace_restored(rules_, pace_remembered(pace_), now()); }

// One batch.
class Round {
 public:
  explicit Round(Fleet& fleet)
      : f_(fleet),
        limiter_(fleet.profile_.limiter()),
        next_task_(fleet.options_.clients, 0),
        done_(fleet.options_.clients, 0),
        per_client_(fleet.profile_.tasks / fleet.options_.clients),
        begin_(fleet.now_) {
    result_.tasks = per_client_ * fleet.options_.clients;
  }

  Batch run() {
    for (int c = 0; c < f_.options_.clients; ++c) {
      for (int w = 0; w < f_.options_.workers; ++w) {
        at(begin_ + 0.0003 * uniform(), [this, c] { next(c); });
      }
    }
    while (!events_.empty() && events_.top().at <= begin_ + f_.options_.deadline &&
           result_.completed < result_.tasks) {
      Event event = events_.top();
      events_.pop();
      f_.now_ = std::max(f_.now_, event.at);
      event.act();
    }
    if (result_.completed < result_.tasks) result_.elapsed = f_.options_.deadline;
    // What is still on its way comes home before the next batch.
    while (!events_.empty()) {
      Event event = events_.top();
      events_.pop();
      f_.now_ = std::max(f_.now_, event.at);
      if (event.answer) event.act();
    }
    result_.ratio = result_.elapsed / f_.profile_.oracle_time(f_.options_.network);
    result_.banned = limiter_->banned();
    result_.outside_refused = limiter_->outside_refused();
    const auto& shares = first_.empty() ? done_ : first_;
    double sum = 0, squares = 0;
    for (int n : shares) {
      sum += n;
      squares += static_cast<double>(n) * n;
    }
    result_.jain = squares > 0 ? sum * sum / (static_cast<double>(shares.size()) * squares) : 1;
    return result_;
  }

 private:
  struct Event {
    double at;
    std::uint64_t order;
    std::function<void()> act;
    bool answer = false;
    bool operator<(const Event& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  struct Request {
    std::uint64_t id = 0;
    int client = 0;
    int attempt = 1;  // of the client
    unsigned retries = 0;
    Instant arrived{};
    int status = 0;
  };

  double uniform() {
    f_.random_ = scramble(f_.random_);
    return static_cast<double>(f_.random_ >> 11) * 0x1p-53;
  }
  double network() { return f_.options_.network * (0.5 + uniform() * (uniform() < 0.02 ? 10 : 1)); }
  void at(double time, std::function<void()> act, bool answer = false) {
    events_.push({time, ++order_, std::move(act), answer});
  }

  // A client's worker turns to its next task.
  void next(int client) {
    if (next_task_[client] >= per_client_) return;
    ++next_task_[client];
    send({.client = client});
  }
  void send(Request request) {
    request.arrived = f_.now();
    request.id = ++last_id_;
    enqueue(request, false);
    pump();
  }
  void retry(Request request) {
    ++request.retries;
    enqueue(request, true);
  }
  void enqueue(const Request& request, bool first) {
    waiting_[request.id] = request;
    queue_.push({.id = request.id,
                 .client = static_cast<std::uint64_t>(request.client),
                 .connection = request.id,
                 .deadline = Instant::max()},
                first);
  }

  // Lets go what breaker and pacer let go, in fair turn.
  void pump() {
    for (;;) {
      const Waiter* const next = queue_.front();
      if (!next) return;
      const Request request = waiting_.at(next->id);
      auto step = decide(f_.rules_, f_.breaker_, f_.now(), {.arrived = request.arrived});
      using Act = Decision::Act;
      if (step.decision.act == Act::refuse) {
        f_.breaker_ = std::move(step.next);
        leave(request);
        answer_client(request, false);
        continue;
      }
      if (step.decision.act == Act::hold) return wake(step.decision.until);
      const double jitter = uniform();
      const Instant opens = pace_opens(f_.rules_, f_.pace_, f_.now());
      if (opens > f_.now()) return wake(opens);
      f_.breaker_ = std::move(step.next);
      const PaceTicket pace = pace_take(f_.rules_, f_.pace_, f_.now(), jitter);
      leave(request);
      forward(request, step.decision.ticket, pace);
    }
  }
  void leave(const Request& request) {
    queue_.pop();
    waiting_.erase(request.id);
  }
  void wake(Instant when) {
    if (when == Instant::max() || (wake_ > f_.now() && wake_ <= when)) return;
    wake_ = when;
    at(static_cast<double>(when.time_since_epoch().count()) / 1e6, [this] { pump(); });
  }

  void forward(Request request, Ticket breaker, PaceTicket pace) {
    at(
        f_.now_ + network(), [=, this] { arrive(request, breaker, pace); }, true);
  }

  void arrive(Request request, const Ticket& breaker, const PaceTicket& pace) {
    const Profile& profile = f_.profile_;
    if (!started_) {
      started_ = true;
      origin_start_ = f_.now_;
    }
    const Verdict verdict = limiter_->take(f_.now_ - origin_start_);
    const double utc = epoch + f_.now_ + f_.options_.skew;
    auto fields = announce(profile, verdict, utc);
    if (!verdict.ok) {
      ++result_.rejected;
      result_.rejected_at.push_back(f_.now_ - origin_start_);
      request.status = profile.style == Style::retry_date  ? 503
                       : profile.style == Style::github403 ? 403
                       : profile.style == Style::bot_page  ? 200
                                                           : 429;
    } else {
      ++accepted_;
      const auto luck = scramble(accepted_) % 100;
      request.status = luck < static_cast<unsigned>(profile.fail_pct)      ? 500
                       : luck < static_cast<unsigned>(profile.neutral_pct) ? 404
                                                                           : 200;
    }
    const double took = verdict.ok ? profile.latency : 0.005;
    const bool ok = verdict.ok;
    if (f_.options_.trace) {
      std::printf("%8.4f %s in flight %u remaining %d\n", f_.now_ - origin_start_,
                  ok ? "ok" : "REFUSED", pace.crowd, verdict.remaining);
    }
    at(
        f_.now_ + took,
        [=, this] {
          if (ok) limiter_->release();
          at(
              f_.now_ + network(), [=, this] { answered(request, breaker, pace, fields, ok); },
              true);
        },
        true);
  }

  void answered(Request request, const Ticket& ticket, PaceTicket pace,
                const std::vector<Field>& fields, bool ok) {
    const auto utc = UtcTime(Duration(std::llround((epoch + f_.now_) * 1e6)));
    Outcome outcome = f_.classifier_.head(static_cast<std::uint16_t>(request.status), fields, utc);
    if (!ok && f_.profile_.style == Style::bot_page) outcome.kind = OutcomeKind::anti_bot;
    outcome.ticket = ticket;
    outcome.sent = pace.sent;
    const Instant now = f_.now();
    const HostState before = f_.breaker_;
    pace_observe(f_.rules_, f_.pace_, now, pace, outcome);
    pace_done(f_.pace_, pace);
    f_.breaker_ = observe(f_.rules_, std::move(f_.breaker_), now, outcome, uniform());
    if (f_.options_.trace && f_.breaker_.epoch != before.epoch) {
      std::printf("         breaker open for %.3f\n",
                  static_cast<double>((f_.breaker_.until - now).count()) / 1e6);
    }
    if (before.phase != Phase::closed && f_.breaker_.phase == Phase::closed) {
      pace_reopened(f_.rules_, f_.pace_);
    }
    const bool good = outcome.kind == OutcomeKind::success || outcome.kind == OutcomeKind::neutral;
    if (!good && f_.rules_.retry.on.contains(outcome.kind) &&
        request.retries < f_.rules_.retry.max) {
      retry(request);
    } else {
      answer_client(request, good);
    }
    pump();
  }

  void answer_client(Request request, bool good) {
    const int client = request.client;
    const double home = f_.now_ + network() / 4;
    if (!good) {
      ++result_.client_errors;
      const double wait = request.attempt == 1 ? 0 : 0.1;
      at(home + wait, [=, this] { send({.client = client, .attempt = request.attempt + 1}); });
      return;
    }
    ++result_.completed;
    result_.elapsed = home - begin_;
    if (++done_[client] == per_client_ && first_.empty()) first_ = done_;
    at(home, [=, this] { next(client); });
  }

  Fleet& f_;
  std::unique_ptr<Limiter> limiter_;
  std::priority_queue<Event> events_;
  std::uint64_t order_ = 0;
  FairQueue queue_{1000};
  std::map<std::uint64_t, Request> waiting_;
  std::uint64_t last_id_ = 0;
  Instant wake_{};
  std::vector<int> next_task_, done_, first_;
  int per_client_;
  double begin_;
  bool started_ = false;
  double origin_start_ = 0;
  std::uint64_t accepted_ = 0;
  Batch result_;
};

Batch Fleet::play() { return Round(*this).run(); }

}  // namespace sluice::lab
