#include "proxy/alerts/alerts.h"

#include <openssl/rand.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "policy/units.h"
#include "proxy/alerts/alert_command.h"
#include "proxy/alerts/body.h"
#include "proxy/alerts/event_alert.h"
#include "proxy/alerts/webhook.h"
#include "proxy/clock.h"
#include "store/blocking.h"
#include "store/lease.h"

namespace sluice {
namespace {

constexpr std::string_view kLease = "alerts";
constexpr Duration kPromised = 30s;
// Beyond the try that it is taken for.
constexpr Duration kLeaseLength = 10s;
constexpr Duration kRenewEvery = 4s;
constexpr Duration kTurn = 1s;
// Whoever dies with it is replaced in time to tell as promised.
static_assert(kLongestAlertTry + kLeaseLength + kRenewEvery + kTurn + kStoreWait <= kPromised);
constexpr Duration kLookEvery = 5s;
constexpr int kLookShare = 20;  // at most a twentieth of the time is spent looking at keys
constexpr std::size_t kMaxTold = 100;

std::string make_owner() {
  std::uint64_t number = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&number), sizeof number);
  return "process " + std::to_string(getpid()) + "/" + std::to_string(number);
}

AlertRules rules_of(const AlertsConfig& config) {
  AlertRules rules;
  rules.repeat = config.repeat;
  rules.per_hour = config.max_per_hour;
  rules.burst = std::min(rules.burst, config.max_per_hour);
  rules.give_up = config.give_up;
  return rules;
}

}  // namespace

Result<std::unique_ptr<Alerts>> Alerts::make(const AlertsConfig& config, Store& store,
                                             UtcTime started) {
  if (config.webhook.empty() && config.command.empty()) return std::unique_ptr<Alerts>();
  std::unique_ptr<Alerts> alerts(new Alerts(config, store, started));
  const auto add = [&](std::unique_ptr<AlertReceiver> receiver) {
    alerts->channels_.push_back(std::make_unique<AlertChannel>(
        store, rules_of(config), std::move(receiver), alerts->tally_));
  };
  const std::string machine = machine_name();
  if (!config.webhook.empty()) {
    auto webhook = Webhook::make({config.webhook, config.extra_ca, config.timeout, machine});
    if (!webhook) return Error{webhook.error()};
    add(std::move(*webhook));
  }
  if (!config.command.empty()) {
    add(std::make_unique<AlertCommand>(
        AlertCommandOptions{config.command, config.timeout, machine}));
  }
  return alerts;
}

Alerts::Alerts(const AlertsConfig& config, Store& store, UtcTime started)
    : config_(config),
      store_(store),
      started_(started),
      owner_(make_owner()),
      slow_open_(store, config.slow_open) {}

Alerts::~Alerts() { stop(); }

void Alerts::start() {
  thread_ = std::thread([this] { run(); });
}

void Alerts::stop() {
  {
    const std::lock_guard guard(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Alerts::tell(Event event) {
  {
    const std::lock_guard guard(mutex_);
    if (told_.size() >= kMaxTold)
      return spdlog::error("too much at once: not alerted: {}", event.text);
    told_.push_back(std::move(event));
  }
  wake_.notify_one();
}

void Alerts::run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    lock.unlock();
    turn();
    lock.lock();
    wake_.wait_for(lock, kTurn, [this] { return ending_ || !told_.empty(); });
  }
  lock.unlock();
  // So that another process, or the next one, need not wait until it ends by itself.
  if (mine_ != Mine::yes) return;
  const auto released =
      wait_for([this](Completion done) { release_lease(store_, kLease, owner_, std::move(done)); },
               kStoreWait);
  if (!released) spdlog::warn("alerts: {}", released.error());
}

void Alerts::turn() {
  const ClockPair now = clock_now();
  watch_store(now);
  take_told(now);
  if (now.mono >= renew_) keep_lease(now);
  if (mine_ == Mine::yes && loaded_) {
    for (const auto& channel : channels_) {
      channel->read_events(now, [this](const Alert& alert) { return wanted(alert); });
    }
    if (now.mono >= look_again_) {
      slow_open_.look(now);
      const Instant done = monotonic_now();
      look_again_ = done + std::max(kLookEvery, kLookShare * (done - now.mono));
    }
  }
  deliver();
  std::uint64_t waiting = 0;
  for (const auto& channel : channels_) {
    channel->give_up(clock_now());
    waiting += channel->waiting();
  }
  tally_.waiting = waiting;
}

// Asks the store itself: one that fails keeps no event of it.
void Alerts::watch_store(const ClockPair& now) {
  const Health health = store_.health();
  if (!health.ok && !trouble_) {
    trouble_ = now.mono;
    take({AlertKind::store, "", health.sentence, now.utc, 1}, now);
  } else if (health.ok && trouble_) {
    const std::string text =
        "the store works again, after " + format_duration(now.mono - *trouble_);
    trouble_.reset();
    spdlog::info("{}", text);
    Event event{now.utc, EventKind::store, "", text, EventMark::ends};
    const auto kept =
        wait_for([&](Completion done) { store_.append(event, std::move(done)); }, kStoreWait);
    if (!kept) tell(std::move(event));
  }
}

void Alerts::take_told(const ClockPair& now) {
  std::vector<Event> told;
  {
    const std::lock_guard guard(mutex_);
    told.swap(told_);
  }
  for (const Event& event : told) {
    if (const auto alert = alert_of(event)) take(*alert, now);
  }
}

void Alerts::take(const Alert& alert, const ClockPair& now) {
  if (!wanted(alert)) return;
  for (const auto& channel : channels_) channel->take(alert, now);
}

bool Alerts::wanted(const Alert& alert) const {
  const std::string_view word = alert_switch(alert.kind);
  return word.empty() ||
         std::find(config_.kinds.begin(), config_.kinds.end(), word) != config_.kinds.end();
}

Alerts::Mine Alerts::ask_lease(const ClockPair& now) {
  const auto taken = wait_for(
      [&](Completion done) {
        take_lease(store_, kLease, owner_, now, config_.timeout + kLeaseLength, std::move(done));
      },
      kStoreWait);
  renew_ = now.mono + kRenewEvery;
  if (!taken) return Mine::unknown;
  return *taken == 1 ? Mine::yes : Mine::no;
}

void Alerts::keep_lease(const ClockPair& now) {
  const Mine before = std::exchange(mine_, ask_lease(now));
  // What was told last stays known while the store cannot say.
  if (mine_ == Mine::no && before != Mine::no) {
    if (loaded_) {
      for (const auto& channel : channels_) channel->forget();
    }
    loaded_ = false;
  }
  if (mine_ == Mine::yes && !loaded_) {
    loaded_ = std::all_of(channels_.begin(), channels_.end(),
                          [&](const auto& channel) { return channel->load(now, started_); });
  }
}

// One of each in turn, so that a receiver that hangs holds up the other for one try only.
void Alerts::deliver() {
  const auto may_send = [this] {
    if (mine_ != Mine::yes) return true;  // it is what only this process knows
    keep_lease(clock_now());
    return mine_ != Mine::no;
  };
  bool more = true;
  while (more && !ending_) {
    more = false;
    for (const auto& channel : channels_) {
      more |= !ending_ && channel->deliver(clock_now(), may_send, ending_);
    }
  }
}

}  // namespace sluice
