#include "proxy/governor/allowances.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "policy/classify.h"
#include "proxy/clock.h"

namespace sluice {
namespace {

// Between a key and a role; in no key. A role with limits of its own has windows of its own.
constexpr char kRoleMark = '\0';
constexpr std::size_t kLongestValueShown = 60;

bool has_own_limits(const Match& match) {
  return match.role != nullptr && match.role->rules.limits != match.policy->rules.limits;
}

std::string windows_of(const std::string& key, const Match& match) {
  if (!has_own_limits(match)) return key;
  return key + kRoleMark + match.role->name;
}

PriceClass price_class(const Journey& who) { return {who.match.policy->name, who.cost->price}; }

bool only_watched(const Journey& who) { return who.match.rules->mode == Mode::observe; }

Instant on_this_clock(UtcTime at, const ClockPair& now) { return now.mono + (at - now.utc); }

}  // namespace

std::shared_ptr<const Cost> cost_of(const CostRules& rules, std::string_view host,
                                    std::string_view path, bool tunnel) {
  if (rules.per_request <= 0 && rules.paths.empty() && rules.header.empty()) return nullptr;
  const Micros price = request_cost(rules, path);
  const bool open = !rules.header.empty() && !tunnel;
  if (price == 0 && !open) return nullptr;
  return std::make_shared<const Cost>(Cost{price, open, std::string(host)});
}

Allowances::Allowances(Store& store, const Options& options, const OnRefill& on_refill)
    : go_on_(options.go_on_without_store),
      limits_(store,
              [on_refill](const std::string& windows) {
                on_refill(windows.substr(0, windows.find(kRoleMark)));
              }),
      ledger_(store, options.budget, options.zone, options.go_on_without_store,
              [on_refill](const std::vector<std::string>& keys) {
                for (const std::string& key : keys) on_refill(key);
              }),
      prices_(store),
      book_(store, options.budget.reset, options.zone),
      on_refill_(on_refill) {}

std::optional<Allowances::Answer> Allowances::stopped(const Journey& who) {
  if (!who.cost || only_watched(who)) return std::nullopt;
  const ClockPair now = clock_now();
  auto stop = ledger_.stopped(who.cost->open ? prices_.expected(price_class(who)) : who.cost->price,
                              now.utc);
  if (!stop) return std::nullopt;
  return Answer{Answer::Kind::budget, on_this_clock(stop->until, now), std::move(stop->why), {}};
}

Allowances::Answer Allowances::take(const std::string& key, const Journey& who) {
  Answer answer;
  if (!who.match.rules->limits.requests.empty() && !take_place(key, who, answer)) return answer;
  if (who.cost) take_money(key, who, answer);
  return answer;
}

// False: it must not go.
bool Allowances::take_place(const std::string& key, const Journey& who, Answer& answer) {
  using Kind = RequestLimits::Answer::Kind;
  const auto said = limits_.take(windows_of(key, who.match), who.match.rules->limits, clock_now());
  if (limits_fail_.load(std::memory_order_relaxed) && said.kind != Kind::failed) {
    limits_fail_ = false;
  }
  switch (said.kind) {
    case Kind::go: answer.taken.place = said.at; return true;
    case Kind::soon: answer.kind = Answer::Kind::soon; break;
    case Kind::at: answer = {Answer::Kind::limit, said.at, "its `limits` are used up", {}}; break;
    case Kind::failed:
      if (!limits_fail_.exchange(true)) {
        spdlog::error("limits cannot be kept in the store: {}; {}", said.why,
                      go_on_ ? "they hold nobody back" : "requests that they count are refused");
      }
      if (go_on_) return true;
      answer = {Answer::Kind::failed, {}, said.why, {}};
      break;
  }
  if (!only_watched(who)) return false;
  answer.kind = Answer::Kind::go;
  return true;
}

// Without a mark there is nothing to exceed.
bool Allowances::is_bound(const Journey& who) const {
  return who.cost->open && !only_watched(who) && !ledger_.unlimited();
}

void Allowances::take_money(const std::string& key, const Journey& who, Answer& answer) {
  using Kind = BudgetLedger::Answer::Kind;
  const ClockPair now = clock_now();
  const bool watched = only_watched(who);
  Micros price = who.cost->price;
  if (is_bound(who)) {
    const auto quote = prices_.ask(price_class(who), key);
    if (!quote) {
      give_back(key, who, {.place = answer.taken.place});
      answer = {Answer::Kind::price,
                {},
                "no answer has named a price in " + who.match.rules->cost.header +
                    " yet: until one does, one request at a time goes by the policy " +
                    who.match.policy->name,
                {}};
      return;
    }
    price = quote->price;
    answer.taken.scout = quote->scout;
  } else if (who.cost->open) {
    price = prices_.expected(price_class(who));
  }
  const auto said = ledger_.take(price, now.utc, watched ? std::string() : key);
  answer.taken.at = now.utc;
  if (said.kind == Kind::go) {
    answer.taken.money = said.taken;
    answer.taken.day_end = said.until;
    return;
  }
  if (watched) {
    const auto forced = ledger_.force(price, now.utc);
    answer.taken.money = forced.taken;
    answer.taken.day_end = forced.until;
    if (said.kind == Kind::stopped) answer.why = said.why;
    return;
  }
  give_back(key, who, {.place = answer.taken.place, .scout = answer.taken.scout});
  answer.taken = {};
  switch (said.kind) {
    case Kind::go: break;
    case Kind::soon: answer.kind = Answer::Kind::soon; break;
    case Kind::stopped:
      answer = {Answer::Kind::budget, on_this_clock(said.until, now), said.why, {}};
      break;
    case Kind::failed: answer = {Answer::Kind::failed, {}, said.why, {}}; break;
  }
}

void Allowances::give_back(const std::string& key, const Journey& who, const Allowance& taken) {
  scouted(who, taken, false);
  if (taken.empty()) return;
  const ClockPair now = clock_now();
  if (taken.place != Instant{}) {
    limits_.give_back(windows_of(key, who.match), {.at = taken.place}, now);
  }
  ledger_.give_back({.taken = taken.money, .until = taken.day_end}, now.utc);
}

void Allowances::scouted(const Journey& who, const Allowance& taken, bool answered) {
  if (!taken.scout || !prices_.scouted(price_class(who), answered)) return;
  spdlog::warn(
      "policy {}: an answer has named no price in {}, which [cost] header says it does; until one "
      "does, one request at a time goes. per_request can say how much one may cost at most",
      who.match.policy->name, who.match.rules->cost.header);
}

void Allowances::complain_of(const Journey& who, const std::string& value) {
  if (!prices_.unreadable(price_class(who), utc_now())) return;
  spdlog::warn(
      "policy {}: \"{}\" in {} is not a price; until it is a number such as 0.0125 or 5e-04, each "
      "request counts as much as the dearest known one",
      who.match.policy->name, printable(value, kLongestValueShown), who.match.rules->cost.header);
}

// Where the answer is missing or cannot be read, the origin may have charged what was expected.
void Allowances::spent(const Journey& who, const Allowance& taken, const Bill& bill) {
  if (!who.cost) return;
  const bool unreadable = !bill.named && bill.unreadable && who.cost->open;
  const bool lost = !bill.named && !bill.answered && who.cost->open && !taken.scout;
  const Micros cost = bill.named.value_or(unreadable || lost ? taken.money : who.cost->price);
  if (bill.named && who.cost->open) prices_.named(price_class(who), cost, taken.at);
  if (unreadable) complain_of(who, *bill.unreadable);
  scouted(who, taken, bill.answered && !unreadable);
  ledger_.correct({.taken = taken.money, .until = taken.day_end}, cost, utc_now());
  book_.add({who.match.policy->name, who.cost->host, who.job, cost}, taken.at);
  if (who.pass) who.pass->add_cost(cost);
}

void Allowances::tell_ready() {
  for (const std::string& key : prices_.take_ready()) on_refill_(key);
}

void Allowances::tidy() {
  const ClockPair now = clock_now();
  limits_.tidy(now);
  ledger_.tidy(now.utc);
  book_.flush();
  prices_.refresh();
  tell_ready();
}

void Allowances::close() {
  const ClockPair now = clock_now();
  limits_.close(now);
  ledger_.close(now.utc);
  book_.flush();
}

}  // namespace sluice
