#include "proxy/net/resolver.h"

#include <event2/dns.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <list>
#include <unordered_set>
#include <utility>

#include "proxy/clock.h"
#include "proxy/net/dns_over_tcp.h"
#include "proxy/net/host_name.h"
#include "proxy/net/hosts_file.h"
#include "proxy/net/resolver_cache.h"

namespace sluice {

namespace {

using Status = Resolution::Status;

constexpr std::size_t max_flights = 1024;  // names being asked for at once
// RFC 8305 §3: Resolution Delay, how long the first family with an address waits for the other.
constexpr timeval resolution_delay = {0, 50'000};
// evdns reports SERVFAIL as a time-out, only sooner. No real one is shorter: resolv.conf counts in
// whole seconds.
constexpr Duration shortest_timeout = 1s;

struct FreeEvent {
  void operator()(event* e) const noexcept { event_free(e); }
};
using EventPtr = std::unique_ptr<event, FreeEvent>;

EventPtr new_timer(event_base* base, event_callback_fn callback, void* argument) {
  EventPtr timer(event_new(base, -1, 0, callback, argument));
  if (!timer) std::abort();  // out of memory
  return timer;
}

DnsAnswer answer_of_evdns(int result, char type, int count, int ttl, const void* bytes) {
  using Said = DnsAnswer::Status;
  if (result == DNS_ERR_NOTEXIST) return {Said::missing};
  if (result == DNS_ERR_TIMEOUT) return {Said::timed_out};
  if (result != DNS_ERR_NONE && result != DNS_ERR_NODATA) return {Said::failed};
  DnsAnswer answer{Said::found, {}, static_cast<std::uint32_t>(std::max(ttl, 0))};
  if (type != DNS_IPv4_A && type != DNS_IPv6_AAAA) return answer;
  const auto* next = static_cast<const std::uint8_t*>(bytes);
  for (int i = 0; i < count; ++i) {
    std::uint8_t ip[16] = {};
    const std::size_t size = type == DNS_IPv4_A ? 4 : 16;
    std::memcpy(ip, next, size);
    next += size;
    answer.addresses.push_back(size == 4 ? Address::v4(ip[0], ip[1], ip[2], ip[3])
                                         : Address::v6(ip));
  }
  return answer;
}

std::vector<Address> name_servers(evdns_base* dns) {
  std::vector<Address> servers;
  for (int i = 0; i < evdns_base_count_nameservers(dns); ++i) {
    sockaddr_storage storage;
    auto* address = reinterpret_cast<sockaddr*>(&storage);
    const int size = evdns_base_get_nameserver_addr(dns, i, address, sizeof storage);
    if (size > 0) servers.push_back(Address::from_sockaddr(address, static_cast<socklen_t>(size)));
  }
  return servers;
}

}  // namespace

struct Resolver::Waiter {
  Callback callback;
  std::list<Waiter*>* queue = nullptr;  // where it waits; null: in none
  std::list<Waiter*>::iterator place;
  Resolution known;  // what to say when the answer did not need DNS
  EventPtr soon;

  ~Waiter() {
    if (queue != nullptr) queue->erase(place);
  }
  // Nothing of the waiter is touched after the call: the callback may drop it.
  void answer(const Resolution& resolution) {
    const Callback run = std::exchange(callback, nullptr);
    if (run) run(resolution);
  }
  void answer_soon(event_base* base, Resolution resolution) {
    known = std::move(resolution);
    soon = new_timer(
        base,
        [](evutil_socket_t, short, void* self) {
          auto* waiter = static_cast<Waiter*>(self);
          const Resolution copy = std::move(waiter->known);
          waiter->answer(copy);
        },
        this);
    event_active(soon.get(), EV_TIMEOUT, 0);
  }
};

class Resolver::Core {
 public:
  Core(event_base* base, const std::map<std::string, std::string>& fixed, ResolverOptions options)
      : base_(base),
        now_(options.now ? std::move(options.now) : monotonic_now),
        hosts_(std::move(options.hosts_file)),
        resolv_conf_(std::move(options.resolv_conf)) {
    localhost_.addresses = {*parse_ip("127.0.0.1"), *parse_ip("::1")};
    bad_name_.status = Status::bad_name;
    for (const auto& [text, address] : fixed) {
      const auto name = HostName::parse(text);
      const auto ip = parse_ip(address);
      if (name && ip) fixed_[std::string(name->view())] = {Status::ok, {*ip}};
    }
  }
  ~Core();

  const Resolution* find(std::string_view host);
  Handle resolve(std::string_view host, Callback callback);

 private:
  // One evdns with the name servers of its day. After a change of resolv.conf the old one stays
  // until its last question is answered.
  struct Dns {
    evdns_base* base = nullptr;
    std::size_t open = 0;
    ~Dns() { evdns_base_free(base, 1); }
  };
  // A name being asked for. Lives until both families have answered.
  struct Flight {
    Core* core = nullptr;
    std::string key;
    Instant asked{};
    int open = 0;           // families without an answer
    bool answered = false;  // the waiters got what there was; the rest only goes to the cache
    bool missing = false, failed = false, timed_out = false;
    std::vector<Address> v6, v4;
    Instant expires = Instant::max();  // of the family that says so first
    std::list<Waiter*> waiters;
    EventPtr delay;
    std::vector<std::unique_ptr<DnsOverTcp>> long_answers;

    std::string name() const { return key.substr(0, key.find_last_not_of('.') + 1); }
    Resolution result() const;
  };
  // What evdns holds for us. It always calls back, after the resolver's end too, so a question
  // belongs to nobody but its callback.
  struct Ask {
    Core* core = nullptr;  // null: the resolver is gone
    Flight* flight = nullptr;
    Dns* dns = nullptr;
    DnsType type = DnsType::a;
    bool searches = false;
  };

  Dns& dns(Instant now);
  bool ask(Flight& flight, Dns& dns, DnsType type, bool searches);
  bool ask_otherwise(const Ask& asked, int result);
  bool ask_over_tcp(const Ask& asked);
  void arrived(Flight& flight, DnsType type, const DnsAnswer& said);
  void answer(Flight& flight);
  static void on_answer(int result, char type, int count, int ttl, void* bytes, void* ask);

  event_base* base_;
  std::function<Instant()> now_;
  NameMap<Resolution> fixed_;
  Resolution localhost_, bad_name_;
  Resolution scratch_;  // what find() last found outside the cache; keeps its capacity
  HostsFile hosts_;
  FileWatch resolv_conf_;
  ResolverCache cache_;
  std::list<Dns> dns_;  // the one in use last
  std::unordered_set<Ask*> asks_;
  NameMap<std::unique_ptr<Flight>> flights_;
};

namespace {

// "example.com" may be searched for in other domains, "example.com." not: two cache entries.
class CacheKey {
 public:
  explicit CacheKey(const HostName& name) : size_(name.view().copy(text_, sizeof text_ - 1)) {
    if (name.absolute()) text_[size_++] = '.';
  }
  std::string_view view() const { return {text_, size_}; }

 private:
  char text_[254];
  std::size_t size_;
};

}  // namespace

Resolver::Core::~Core() {
  for (Ask* ask : asks_) ask->core = nullptr;
  for (auto& [key, flight] : flights_)
    for (Waiter* waiter : flight->waiters) waiter->queue = nullptr;
}

const Resolution* Resolver::Core::find(std::string_view host) {
  if (const auto literal = parse_ip(host)) {
    scratch_.addresses.assign(1, *literal);
    return &scratch_;
  }
  const auto name = HostName::parse(host);
  if (!name) return &bad_name_;
  if (const auto fixed = fixed_.find(name->view()); fixed != fixed_.end()) return &fixed->second;
  if (name->is_or_is_below("localhost")) return &localhost_;  // RFC 6761 §6.3
  const Instant now = now_();
  if (const auto* listed = hosts_.find(name->view(), now)) {
    scratch_.addresses = *listed;
    return &scratch_;
  }
  return cache_.find(CacheKey(*name).view(), now);
}

Resolver::Handle Resolver::Core::resolve(std::string_view host, Callback callback) {
  auto waiter = std::make_unique<Waiter>();
  waiter->callback = std::move(callback);
  if (const Resolution* known = find(host)) {
    waiter->answer_soon(base_, *known);
    return Handle(std::move(waiter));
  }
  const auto name = HostName::parse(host);
  const CacheKey key(*name);
  auto found = flights_.find(key.view());
  if (found == flights_.end() && flights_.size() >= max_flights) {
    waiter->answer_soon(base_, {Status::failed, {}});
    return Handle(std::move(waiter));
  }
  if (found == flights_.end()) {
    const Instant now = now_();
    auto flight = std::make_unique<Flight>();
    flight->core = this;
    flight->key = key.view();
    flight->asked = now;
    Dns& server = dns(now);
    for (const DnsType type : {DnsType::aaaa, DnsType::a}) {
      const bool asked = ask(*flight, server, type, !name->absolute());
      flight->open += asked ? 1 : 0;
      flight->failed |= !asked;
    }
    if (flight->open == 0) {
      waiter->answer_soon(base_, flight->result());
      return Handle(std::move(waiter));
    }
    found = flights_.emplace(flight->key, std::move(flight)).first;
  }
  Flight& flight = *found->second;
  if (flight.answered) {
    // One family is late and what the other said has run out: still better than waiting.
    waiter->answer_soon(base_, flight.result());
    return Handle(std::move(waiter));
  }
  waiter->place = flight.waiters.insert(flight.waiters.end(), waiter.get());
  waiter->queue = &flight.waiters;
  return Handle(std::move(waiter));
}

Resolver::Core::Dns& Resolver::Core::dns(Instant now) {
  if (resolv_conf_.changed(now) || dns_.empty()) {
    evdns_base* made = evdns_base_new(base_, 0);
    if (made == nullptr) std::abort();  // out of memory
    dns_.emplace_back().base = made;
    // A file that is missing or names no server means 127.0.0.1, as everywhere.
    evdns_base_resolv_conf_parse(made, DNS_OPTION_SEARCH | DNS_OPTION_NAMESERVERS | DNS_OPTION_MISC,
                                 resolv_conf_.path().c_str());
    evdns_base_set_option(made, "max-inflight:", "256");
  }
  for (auto old = dns_.begin(); old != std::prev(dns_.end());)
    old = old->open == 0 ? dns_.erase(old) : std::next(old);
  return dns_.back();
}

// False: evdns does not take the question.
bool Resolver::Core::ask(Flight& flight, Dns& server, DnsType type, bool searches) {
  auto ask = std::make_unique<Ask>(Ask{this, &flight, &server, type, searches});
  const auto resolve = type == DnsType::aaaa ? evdns_base_resolve_ipv6 : evdns_base_resolve_ipv4;
  const std::string name = flight.name();
  const int flags = searches ? 0 : DNS_QUERY_NO_SEARCH;
  if (resolve(server.base, name.c_str(), flags, on_answer, ask.get()) == nullptr) return false;
  ++server.open;
  asks_.insert(ask.release());
  return true;
}

void Resolver::Core::on_answer(int result, char type, int count, int ttl, void* bytes, void* arg) {
  const std::unique_ptr<Ask> ask(static_cast<Ask*>(arg));
  if (ask->core == nullptr) return;
  ask->core->asks_.erase(ask.get());
  --ask->dns->open;
  if (ask->core->ask_otherwise(*ask, result)) return;
  ask->core->arrived(*ask->flight, ask->type, answer_of_evdns(result, type, count, ttl, bytes));
}

// evdns knows no answer of more than 512 bytes. Where it searches, it goes on to the next domain,
// and tells in the end that there is no such name.
bool Resolver::Core::ask_otherwise(const Ask& asked, int result) {
  if (result == DNS_ERR_TRUNCATED) return ask_over_tcp(asked);
  const bool passed_over = result == DNS_ERR_NOTEXIST && asked.searches &&
                           asked.type == DnsType::a &&
                           asked.flight->key.find('.') != std::string::npos;
  return passed_over && ask(*asked.flight, *asked.dns, asked.type, false);
}

bool Resolver::Core::ask_over_tcp(const Ask& asked) {
  std::vector<Address> servers = name_servers(asked.dns->base);
  if (servers.empty()) return false;
  Flight* flight = asked.flight;
  flight->long_answers.push_back(std::make_unique<DnsOverTcp>(
      base_, std::move(servers), flight->name(), asked.type,
      [this, flight, type = asked.type](const DnsAnswer& said) { arrived(*flight, type, said); }));
  return true;
}

void Resolver::Core::arrived(Flight& flight, DnsType type, const DnsAnswer& said) {
  using Said = DnsAnswer::Status;
  --flight.open;
  if (!said.addresses.empty()) {
    (type == DnsType::a ? flight.v4 : flight.v6) = said.addresses;
    const Duration ttl = ResolverCache::clamped(std::chrono::seconds(said.ttl_s));
    flight.expires = std::min(flight.expires, now_() + ttl);
  }
  flight.missing |= said.status == Said::missing;
  const bool late = said.status == Said::timed_out && now_() - flight.asked >= shortest_timeout;
  flight.timed_out |= late;
  flight.failed |= said.status == Said::failed || (said.status == Said::timed_out && !late);
  if (flight.open == 0) {
    const auto done = std::move(flights_.find(flight.key)->second);
    flights_.erase(done->key);
    answer(*done);
  } else if (!flight.v4.empty() || !flight.v6.empty()) {
    flight.delay = new_timer(
        base_,
        [](evutil_socket_t, short, void* arg) {
          auto* late = static_cast<Flight*>(arg);
          late->core->answer(*late);
        },
        &flight);
    event_add(flight.delay.get(), &resolution_delay);
  }
}

void Resolver::Core::answer(Flight& flight) {
  flight.answered = true;
  flight.delay.reset();
  const Resolution resolution = flight.result();
  cache_.put(flight.key, resolution, flight.expires, now_());
  while (!flight.waiters.empty()) {
    Waiter* waiter = flight.waiters.front();
    flight.waiters.pop_front();
    waiter->queue = nullptr;
    waiter->answer(resolution);
  }
}

Resolution Resolver::Core::Flight::result() const {
  Resolution resolution;
  resolution.addresses = v6;
  resolution.addresses.insert(resolution.addresses.end(), v4.begin(), v4.end());
  if (!resolution.addresses.empty()) return resolution;
  // NXDOMAIN is about the name, whatever happened to the other question.
  resolution.status = missing     ? Status::not_found
                      : timed_out ? Status::timed_out
                      : failed    ? Status::failed
                                  : Status::not_found;
  return resolution;
}

Resolver::Handle::Handle() = default;
Resolver::Handle::Handle(std::unique_ptr<Waiter> waiter) : waiter_(std::move(waiter)) {}
Resolver::Handle::Handle(Handle&&) noexcept = default;
Resolver::Handle& Resolver::Handle::operator=(Handle&&) noexcept = default;
Resolver::Handle::~Handle() = default;

Resolver::Resolver(event_base* base, const std::map<std::string, std::string>& fixed,
                   ResolverOptions options)
    : core_(std::make_unique<Core>(base, fixed, std::move(options))) {}
Resolver::~Resolver() = default;

const Resolution* Resolver::find(std::string_view host) { return core_->find(host); }

Resolver::Handle Resolver::resolve(std::string_view host, Callback callback) {
  return core_->resolve(host, std::move(callback));
}

std::optional<std::string> resolve_table_problem(const std::map<std::string, std::string>& table) {
  for (const auto& [name, address] : table) {
    if (!HostName::parse(name)) return "proxy.resolve: \"" + name + "\" is not a host name";
    if (!parse_ip(address)) return "proxy.resolve: \"" + address + "\" is not an address";
  }
  return std::nullopt;
}

}  // namespace sluice
