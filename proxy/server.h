// The running proxy: binds the addresses, starts the workers, waits for signals, drains and stops.
// Lives on the main thread.
#pragma once

#include <atomic>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "policy/result.h"
#include "proxy/access.h"
#include "proxy/access_log.h"
#include "proxy/admin/governor_source.h"
#include "proxy/admin/server.h"
#include "proxy/alerts/alerts.h"
#include "proxy/config_reader.h"
#include "proxy/daemon_record.h"
#include "proxy/door/doorkeeper.h"
#include "proxy/governor/governor.h"
#include "proxy/net/listener.h"
#include "proxy/policy_watch.h"
#include "proxy/pulse.h"
#include "proxy/stop_switch.h"
#include "proxy/tls/interception.h"
#include "proxy/users.h"
#include "proxy/worker.h"
#include "store/open.h"

namespace sluice {

class Server {
 public:
  // The store that the configuration names. One that cannot be opened is an error, or memory with a
  // notice, as store.on_failure says.
  static Result<OpenedStore> open_store(const LoadedConfig& loaded, UtcTime now);
  // Checks everything that can be wrong before the first client comes, and binds. What has happened
  // in the store since `started` is told.
  static Result<std::unique_ptr<Server>> make(LoadedConfig loaded, OpenedStore store,
                                              UtcTime started);
  ~Server();

  // Until SIGTERM or SIGINT; a second one ends at once. take_over_signals() comes before. `out` is
  // told once everything is.
  void run(std::ostream& out);

 private:
  Server(LoadedConfig loaded, std::unique_ptr<Store> store)
      : loaded_(std::move(loaded)),
        config_(loaded_.config),
        emergency_(loaded_.state_dir),
        store_(std::move(store)) {}
  Result<bool> prepare(UtcTime started);
  std::string ready_line() const;
  Result<bool> begin_governing();
  Result<bool> open_tls();
  void open_door();
  void start_door();
  Result<bool> open_alerts(UtcTime started);
  void on_emergency(bool in_force);
  void tell(const Event& event);  // what the store could not hold
  Result<bool> prepare_admin();
  void start_admin();
  Result<std::vector<Listening>> listen(unsigned workers) const;
  void steer(Pulse& pulse);  // until told to stop
  void reload();
  void drain(Pulse& pulse);

  const LoadedConfig loaded_;
  const Config& config_;
  StopSwitch emergency_;
  std::vector<Address> addresses_;
  std::unique_ptr<AccessRules> access_;
  std::unique_ptr<Users> users_;
  std::unique_ptr<AccessLog> access_log_;
  std::unique_ptr<Alerts>
      alerts_;  // null: off. Told by the store's last writes, so it goes after it
  std::unique_ptr<Store> store_;
  std::unique_ptr<Governor> governor_;
  std::unique_ptr<Interception> tls_;
  std::unique_ptr<PolicyWatch> watch_;  // tells the governor and the last one
  std::unique_ptr<DaemonRecord> record_;
  RobotsDesk robots_;
  std::unique_ptr<Shared> shared_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Doorkeeper> door_;  // null: it could not be opened
  std::atomic<bool> draining_{false};
  std::unique_ptr<GovernorSource> source_;
  std::unique_ptr<AdminServer> admin_;  // null: off. Asks the source, so it goes first
};

}  // namespace sluice
