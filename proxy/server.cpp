#include "proxy/server.h"

#include <openssl/rand.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <thread>

#include "proxy/clock.h"
#include "proxy/service_manager.h"
#include "proxy/signals.h"
#include "proxy/zone_file.h"
#include "store/memory.h"

namespace sluice {
namespace {

// Different for every instance, so that a chain of proxies is no loop.
std::string make_pseudonym() {
  unsigned char bytes[4];
  RAND_bytes(bytes, sizeof bytes);
  std::string name = "sluice-";
  for (const unsigned char byte : bytes) {
    name += "0123456789abcdef"[byte >> 4];
    name += "0123456789abcdef"[byte & 15];
  }
  return name;
}

// Every client may need two descriptors and a pipe. What threads wake each other with is made at
// the start, too: with less than this some of it would be missing.
Result<bool> raise_descriptor_limit(unsigned workers) {
  const rlim_t least = 32 + 8 * workers;
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return true;
  if (limit.rlim_max < least) {
    return Error{"only " + std::to_string(limit.rlim_max) + " open files are allowed, and with " +
                 "proxy.workers = " + std::to_string(workers) + " it takes " +
                 std::to_string(least) + ": raise the limit (ulimit -n, LimitNOFILE)"};
  }
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  return true;
}

// All that the policies say of whom to trust and who we are.
std::vector<TlsIdentity> identities(const PolicySet& set) {
  const auto of = [](const Policy& policy) -> TlsIdentity {
    return {policy.extra_ca, policy.client_cert, policy.client_key};
  };
  std::vector<TlsIdentity> out = {of(set.fallback())};
  for (const auto& policy : set.policies()) out.push_back(of(*policy));
  return out;
}

}  // namespace

Result<OpenedStore> Server::open_store(const LoadedConfig& loaded, UtcTime now) {
  const StoreConfig& config = loaded.config.store;
  auto opened = sluice::open_store(config.url, loaded.state_dir, now);
  if (opened || config.on_failure != "local") return opened;
  return OpenedStore{std::make_unique<MemoryStore>(),
                     opened.error() +
                         "; store.on_failure is \"local\": what is learned is kept in memory only, "
                         "and lost at the end"};
}

Result<std::unique_ptr<Server>> Server::make(LoadedConfig loaded, OpenedStore store,
                                             UtcTime started) {
  if (!store.notice.empty()) spdlog::warn("{}", store.notice);
  std::unique_ptr<Server> server(new Server(std::move(loaded), std::move(store.store)));
  if (const auto ready = server->prepare(started); !ready) return Error{ready.error()};
  return server;
}

Server::~Server() = default;

Result<bool> Server::prepare(UtcTime started) {
  if (const auto problem = resolve_table_problem(config_.proxy.resolve)) return Error{*problem};
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const unsigned count = config_.proxy.workers == 0 ? cores : config_.proxy.workers;
  if (const auto raised = raise_descriptor_limit(count); !raised) return Error{raised.error()};
  if (const auto begun = begin_governing(); !begun) return Error{begun.error()};
  if (const auto opened = open_alerts(started); !opened) return Error{opened.error()};
  if (const auto opened = open_tls(); !opened) return Error{opened.error()};
  if (const auto ready = prepare_admin(); !ready) return Error{ready.error()};

  auto listening = listen(count);
  if (!listening) return Error{listening.error()};
  std::vector<std::vector<OwnedSocket>> sockets(count);
  for (Listening& place : *listening) {
    addresses_.push_back(place.address);
    for (unsigned i = 0; i < count; ++i) sockets[i].push_back(std::move(place.sockets[i]));
  }
  std::vector<Address> own = addresses_;
  if (admin_) own.push_back(admin_->address());
  auto access = AccessRules::make(config_.access, own);
  if (!access) return Error{access.error()};
  access_ = std::make_unique<AccessRules>(std::move(*access));

  if (!config_.access.users.empty()) {
    UserFile file = read_users(config_.access.users);
    if (!file.errors.empty()) return Error{file.errors.front()};
    if (!file.warning.empty()) spdlog::warn("{}", file.warning);
    users_ = std::make_unique<Users>(std::move(file.hashes));
  }
  if (config_.log.access != "off") {
    auto log = AccessLog::open(config_.log.access, config_.log.format == "json");
    if (!log) return Error{log.error()};
    access_log_ = std::move(*log);
  }
  // NOLINTNEXTLINE(modernize-make-unique): it cannot be moved into its place
  shared_.reset(new Shared{config_, *access_, *governor_, emergency_, users_.get(),
                           access_log_.get(), *tls_, robots_, make_pseudonym(),
                           addresses_.front().text()});
  for (auto& mine : sockets)
    workers_.push_back(std::make_unique<Worker>(*shared_, std::move(mine)));
  open_door();
  return true;
}

// The policies, and the governor between them and the store.
Result<bool> Server::begin_governing() {
  auto budget_zone = load_zone(config_.budget.zone);
  if (!budget_zone) return Error{"budget.zone: " + budget_zone.error()};
  PolicyLoad load = load_policies(loaded_.policies_dir, loaded_.base);
  for (const Diagnostic& problem : load.problems) spdlog::error("refused: {}", render(problem));
  auto anomaly_zone = load_zone(config_.anomaly.off_hours.hours.zone);
  if (!anomaly_zone) return Error{"anomaly.off_hours.zone: " + anomaly_zone.error()};
  governor_ = std::make_unique<Governor>(
      *store_, std::make_shared<const Rulebook>(std::move(load)),
      Governor::Options{.go_on_without_store = config_.store.on_failure == "local",
                        .jobs = config_.jobs,
                        .anomaly = config_.anomaly,
                        .anomaly_zone = std::move(*anomaly_zone),
                        .budget = config_.budget,
                        .zone = std::move(*budget_zone),
                        .on_lost = [this](const Event& event) { tell(event); }});
  return true;
}

Result<bool> Server::open_alerts(UtcTime started) {
  auto alerts = Alerts::make(config_.alerts, *store_, started);
  if (!alerts) return Error{alerts.error()};
  alerts_ = std::move(*alerts);
  return true;
}

Result<bool> Server::open_tls() {
  tls_ = std::make_unique<Interception>(config_.tls, loaded_.state_dir);
  OriginSide& origins = tls_->origins;
  if (const auto context = origins.context({}); !context && !config_.tls.extra_ca.empty()) {
    return Error{"tls." + context.error()};
  }
  origins.prepare(identities(*governor_->rules()->load().set));
  PolicyWatch::Hooks hooks;
  hooks.before_in_force = [&origins](const PolicySet& set) { origins.prepare(identities(set)); };
  hooks.now_and_then = [&origins] { origins.look_again(); };
  watch_ = std::make_unique<PolicyWatch>(loaded_.policies_dir, loaded_.base, *governor_,
                                         std::move(hooks));
  return true;
}

// Without it everything works but `sluice exec`, which then says so.
void Server::open_door() {
  auto door = Doorkeeper::make(loaded_.state_dir);
  if (!door) return spdlog::warn("`sluice exec` cannot use this proxy: {}", door.error());
  door_ = std::move(*door);
}

void Server::start_door() {
  if (!door_) return;
  Doorkeeper::House house;
  house.welcome = [this, next = std::size_t{0}](OwnedSocket client, ExecRunRef run) mutable {
    workers_[next++ % workers_.size()]->take_in(std::move(client), std::move(run));
  };
  house.when_settled = [this](const std::function<void()>& task) {
    auto left = std::make_shared<std::atomic<std::size_t>>(workers_.size());
    for (const auto& worker : workers_) {
      worker->post([left, task] {
        if (--*left == 0) task();
      });
    }
  };
  house.count = [this](const ExecRun& run) {
    return governor_->jobs().state_of(run.job, run.run, clock_now());
  };
  door_->start(std::move(house));
}

Result<bool> Server::prepare_admin() {
  if (config_.admin.listen == "off") return true;
  auto admin = AdminServer::make(config_, loaded_.state_dir);
  if (!admin) {
    // Its token has no place either: the traffic goes on without it.
    const bool homeless = !std::filesystem::is_directory(loaded_.state_dir);
    if (config_.store.on_failure != "local" || !homeless) return Error{admin.error()};
    spdlog::warn("there is no admin side: {}", admin.error());
    return true;
  }
  admin_ = std::move(*admin);
  if (!admin_->notice().empty()) spdlog::warn("{}", admin_->notice());
  return true;
}

void Server::start_admin() {
  if (!admin_) return;
  ProcessFacts facts;
  facts.started = utc_now();
  facts.clients = [this] { return shared_->clients.load(); };
  if (alerts_) facts.alerts = &alerts_->tally();
  facts.stopped = [this] { return emergency_.in_force(); };
  facts.readiness = [this] {
    if (draining_) return Readiness{false, "the proxy is stopping"};
    const Health store = store_->health();
    // Without a store, hosts that are not known to be closed are refused.
    if (!store.ok && config_.store.on_failure == "block") return Readiness{false, store.sentence};
    return Readiness{};
  };
  source_ = std::make_unique<GovernorSource>(*governor_, loaded_.state_dir, std::move(facts));
  AdminOptions options;
  options.welcome = [this](const Address& peer) { return access_->client_allowed(peer); };
  admin_->start(*source_, std::move(options));
}

Result<std::vector<Listening>> Server::listen(unsigned workers) const {
  auto inherited = inherited_listeners(workers);
  if (!inherited) return Error{inherited.error()};
  Config in_force = config_;
  if (!inherited->empty()) {
    in_force.proxy.listen.clear();
    for (const Listening& place : *inherited) in_force.proxy.listen.push_back(place.address.text());
    if (in_force.proxy.listen != config_.proxy.listen) {
      spdlog::warn("listening where the service manager's socket is, not where proxy.listen says");
    }
  }
  if (const auto problem = open_proxy_problem(in_force)) return Error{*problem};
  if (!inherited->empty()) return inherited;

  std::vector<Listening> out;
  for (const std::string& text : config_.proxy.listen) {
    const auto address = parse_address(text);
    if (!address) return Error{"proxy.listen: \"" + text + "\" is not an address and a port"};
    auto listening = listen_on(*address, workers);
    if (!listening) return Error{listening.error()};
    out.push_back(std::move(*listening));
  }
  return out;
}

std::string Server::ready_line() const {
  const std::size_t policies = governor_->rules()->load().in_force.size();
  std::string line = "sluice " SLUICE_VERSION " ready: proxy";
  for (const Address& address : addresses_) line += " " + address.text();
  if (admin_) line += ", admin http://" + admin_->address().text() + "/";
  return line + ", " + std::to_string(workers_.size()) +
         (workers_.size() == 1 ? " worker" : " workers") + ", " + std::to_string(policies) +
         (policies == 1 ? " policy" : " policies") + ", store " + config_.store.url;
}

void Server::run(std::ostream& out) {
  for (const auto& worker : workers_) worker->start();
  emergency_.watch([this](bool in_force) { on_emergency(in_force); });
  std::vector<Watchdog::Ask> loops;
  for (const auto& worker : workers_) {
    loops.emplace_back([&worker](auto task) { worker->post(std::move(task)); });
  }
  Pulse pulse(std::move(loops));
  // A port that nobody chose is nobody's daemon.
  const auto chosen = parse_address(config_.proxy.listen.front());
  if (chosen && chosen->port != 0) {
    record_ = std::make_unique<DaemonRecord>(loaded_.state_dir, addresses_.front().text());
  }
  if (alerts_) alerts_->start();
  start_admin();
  start_door();
  service_manager::ready(ready_line());
  out << ready_line() << std::endl;
  steer(pulse);
  record_.reset();
  drain(pulse);
  door_.reset();
  for (const auto& worker : workers_) worker->stop();
  for (const auto& worker : workers_) worker->join();
  emergency_.leave();
  if (alerts_) alerts_->stop();
}

void Server::tell(const Event& event) {
  if (alerts_) alerts_->tell(event);
}

void Server::on_emergency(bool in_force) {
  if (in_force) {  // before anything that could take its time
    for (const auto& worker : workers_) worker->cut_everything();
  }
  const std::string why = emergency_.reason();
  const Event event = stop_event(in_force, why, utc_now());
  record_stop(*store_, in_force, event, {{}, [this, event](const Result<std::uint64_t>& kept) {
                                           if (!kept) tell(event);
                                         }});
  if (!in_force) return spdlog::warn("the emergency stop is over");
  spdlog::error("emergency stop in force{}: nothing is forwarded until `sluice resume`",
                why.empty() ? "" : " (" + why + ")");
}

void Server::steer(Pulse& pulse) {
  for (;;) {
    const SteeringSignal signal = next_signal(pulse.until_next());
    if (signal == SteeringSignal::stop) return;
    if (signal == SteeringSignal::reload) reload();
    pulse.beat_if_due();
  }
}

void Server::reload() {
  service_manager::reloading(monotonic_now());
  watch_->reload();
  service_manager::ready(ready_line());
}

void Server::drain(Pulse& pulse) {
  draining_ = true;
  service_manager::stopping(config_.proxy.drain);
  spdlog::info("stopping: requests under way have {} s to finish", config_.proxy.drain / 1s);
  for (const auto& worker : workers_) worker->stop_accepting_and_drain();
  const Instant end = monotonic_now() + config_.proxy.drain;
  const auto idle = [](const auto& worker) { return worker->idle(); };
  while (!std::all_of(workers_.begin(), workers_.end(), idle) && monotonic_now() < end) {
    if (next_signal(20ms) == SteeringSignal::stop) {
      spdlog::warn("stopped at once by a second signal");
      return;
    }
    pulse.beat_if_due();
  }
}

}  // namespace sluice
