#include "proxy/admin/api.h"

#include <algorithm>
#include <limits>

#include "policy/units.h"
#include "proxy/admin/json.h"
#include "proxy/clock.h"
#include "proxy/dashboard/assets.h"

namespace sluice {
namespace {

constexpr std::string_view kKeyPath = "/api/keys/";
constexpr std::size_t kMaxReason = HostState::max_reason;
constexpr Duration kUsualOpen = 10min;

AdminReply json_reply(const Json& body) {
  AdminReply reply;
  reply.body = text_of(body) + "\n";
  return reply;
}

AdminReply text_reply(std::uint16_t status, std::string body, std::string_view type) {
  AdminReply reply;
  reply.status = status;
  reply.type = type;
  reply.body = std::move(body);
  return reply;
}

AdminReply not_allowed(std::string allow) {
  AdminReply reply = admin_error(405, "this address takes " + allow);
  reply.allow = std::move(allow);
  return reply;
}

// What an order may say with it: an object, or nothing at all.
struct OrderBody {
  std::string reason;
  Duration length = kUsualOpen;
};

// No code point is cut: a reason that is too long is no reason to refuse an order.
std::string shortened(std::string text, std::size_t limit) {
  const auto continues = [&](std::size_t i) {
    return (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
  };
  if (text.size() <= limit) return text;
  while (limit > 0 && continues(limit)) --limit;
  text.resize(limit);
  return text;
}

Result<OrderBody> read_body(const AdminRequest& request) {
  OrderBody out;
  if (request.body.empty()) return out;
  if (request.content_type != "application/json") return Error{"the body must be application/json"};
  const auto body = nlohmann::json::parse(request.body, nullptr, false);
  if (!body.is_object()) return Error{"the body must be a JSON object"};
  for (const auto& [name, value] : body.items()) {
    if (!value.is_string()) return Error{"every value in the body is a string"};
    if (name == "reason") {
      out.reason = shortened(value.get<std::string>(), kMaxReason);
    } else if (name == "for") {
      const auto length = parse_duration(value.get<std::string>());
      if (!length) return Error{"for: " + length.error()};
      if (*length <= Duration(0)) return Error{"for: must be longer than nothing"};
      out.length = *length;
    } else {
      return Error{"the body may have \"for\" and \"reason\", nothing else"};
    }
  }
  return out;
}

struct KeyOrder {
  std::string key;
  std::string_view verb;  // "open", "close"
};
std::optional<KeyOrder> key_order(std::string_view path) {
  if (!path.starts_with(kKeyPath)) return std::nullopt;
  path.remove_prefix(kKeyPath.size());
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view verb = path.substr(slash + 1);
  auto key = percent_decode(path.substr(0, slash));
  if (!key || key->empty() || (verb != "open" && verb != "close")) return std::nullopt;
  return KeyOrder{std::move(*key), verb};
}

bool takes_orders(std::string_view path) {
  return path == "/api/stop" || path == "/api/resume" || path == "/api/alerts/test" ||
         key_order(path);
}

AdminReply outcome(const Result<std::string>& result) {
  if (!result) return admin_error(503, result.error());
  return json_reply({{"done", *result}});
}

}  // namespace

std::optional<AdminReply> AdminApi::answer(const AdminRequest& request, Later later) {
  const bool reading = request.method == "GET" || request.method == "HEAD";
  if (takes_orders(request.path))
    return request.method == "POST" ? order(request, std::move(later)) : not_allowed("POST");
  AdminReply reply = read(request);
  return reading || reply.status == 404 ? std::move(reply) : not_allowed("GET, HEAD");
}

std::optional<AdminReply> AdminApi::order(const AdminRequest& request, Later later) {
  auto body = read_body(request);
  if (!body) return admin_error(400, body.error());
  const AdminSource::Done done = [later = std::move(later)](const Result<std::string>& result) {
    later(outcome(result));
  };
  if (request.path == "/api/stop") {
    source_.stop(std::move(body->reason), done);
  } else if (request.path == "/api/resume") {
    source_.resume(done);
  } else if (request.path == "/api/alerts/test") {
    source_.test_alert(done);
  } else {
    const auto about = key_order(request.path);
    auto key = source_.order_key(about->key);
    if (!key) return admin_error(400, key.error());
    if (about->verb == "open") {
      source_.open(std::move(*key), body->length, std::move(body->reason), done);
    } else if (!source_.knows(*key)) {
      return admin_error(404, "nothing is known about " + *key);
    } else {
      source_.close(std::move(*key), done);
    }
  }
  return std::nullopt;
}

AdminReply AdminApi::read(const AdminRequest& request) {
  const std::string& path = request.path;
  if (path == "/healthz") return probe(false);
  if (path == "/readyz") return probe(true);
  if (path == "/metrics") return metrics();
  if (path == "/api/status") return status();
  if (path == "/api/keys") return keys(request);
  if (path.starts_with(kKeyPath)) return key(std::string_view(path).substr(kKeyPath.size()));
  if (path == "/api/budget") return json_reply(budget_json(source_.budget()));
  if (path == "/api/anomalies") return anomalies();
  if (path == "/api/events") return events(request);
  if (const Asset* asset = find_asset(path == "/" ? "/index.html" : path))
    return text_reply(200, std::string(asset->bytes), asset->type);
  return admin_error(404, "there is nothing at this address");
}

AdminReply AdminApi::probe(bool ready_asked) {
  const Readiness readiness = ready_asked ? source_.readiness() : Readiness{};
  return text_reply(readiness.ready ? 200 : 503, readiness.ready ? "ok\n" : readiness.why + "\n",
                    "text/plain; charset=utf-8");
}

AdminReply AdminApi::metrics() {
  const MetricsInput input{table_.rows(),
                           source_.totals(),
                           source_.budget(),
                           source_.anomalies(),
                           source_.jobs(),
                           source_.policy_problems().size(),
                           source_.store_health().ok && table_.problem().empty(),
                           source_.readiness().ready,
                           utc_now()};
  return text_reply(200, metrics_.page(input), "text/plain; version=0.0.4; charset=utf-8");
}

AdminReply AdminApi::status() {
  const std::vector<KeyRow>& rows = table_.rows();
  const Totals totals = source_.totals();  // after the rows: what goes on is summed up over them
  const auto count = [&](KeyFilter filter) {
    return std::count_if(rows.begin(), rows.end(),
                         [&](const KeyRow& row) { return passes(row, filter); });
  };
  const Readiness readiness = source_.readiness();
  const Health health = source_.store_health();
  Json out;
  out["version"] = SLUICE_VERSION;
  out["now"] = iso_time_ms(utc_now());
  out["started"] = iso_time_ms(totals.started);
  out["ready"] = readiness.ready;
  out["not_ready_because"] = readiness.why;
  out["stop"] = stop_json(totals.stop);
  out["clients"] = totals.clients;
  out["in_flight"] = totals.in_flight;
  out["held"] = totals.held;
  out["outcomes"] = counts_json(totals.outcomes);
  out["refusals"] = Json::object();
  for (const Refused& refused : totals.refusals)
    if (refused.count > 0) out["refusals"][refused.reason] = refused.count;
  out["keys"] = {{"all", rows.size()},
                 {"open", count(KeyFilter::open)},
                 {"half-open", count(KeyFilter::half_open)},
                 {"closed", count(KeyFilter::closed)},
                 {"slowed", count(KeyFilter::slowed)},
                 {"waiting", count(KeyFilter::waiting)}};
  out["history"] = series_json(history_.of_all(totals));
  out["jobs"] = Json::array();
  for (const Job& job : source_.jobs()) out["jobs"].push_back(job_json(job));
  out["policy_problems"] = Json::array();
  for (const PolicyProblem& problem : source_.policy_problems())
    out["policy_problems"].push_back({{"place", problem.place}, {"message", problem.message}});
  out["store"] = {{"ok", health.ok && table_.problem().empty()},
                  {"sentence", health.ok ? table_.problem() : health.sentence},
                  {"failures", totals.store_failures}};
  out["alerts"] = {{"sent", totals.alerts_sent},
                   {"failed", totals.alerts_failed},
                   {"dropped", totals.alerts_dropped},
                   {"waiting", totals.alerts_waiting}};
  return json_reply(out);
}

AdminReply AdminApi::keys(const AdminRequest& request) {
  const auto query = read_key_query(request);
  if (!query) return admin_error(400, query.error());
  const std::vector<KeyRow>& rows = table_.rows();
  const KeySelection selection = select_keys(rows, *query);
  const UtcTime now = utc_now();
  Json out;
  out["now"] = iso_time_ms(now);
  out["total"] = rows.size();
  out["matched"] = selection.matched;
  out["offset"] = query->offset;
  out["keys"] = Json::array();
  for (const KeyRow* row : selection.window) {
    const auto detail = source_.key(row->key);
    if (!detail) continue;  // it went since the rows were copied
    Json one = key_json(*detail, now);
    if (query->history) one["history"] = series_json(history_.of(detail->row));
    out["keys"].push_back(std::move(one));
  }
  return json_reply(out);
}

AdminReply AdminApi::key(std::string_view path) {
  const auto name = percent_decode(path);
  const auto detail = name ? source_.key(*name) : std::nullopt;
  if (!detail) return admin_error(404, "nothing is known about such a key");
  Json out = key_json(*detail, utc_now());
  out["history"] = series_json(history_.of(detail->row));
  return json_reply(out);
}

AdminReply AdminApi::anomalies() {
  Json out{{"anomalies", Json::array()}};
  for (const Anomaly& anomaly : source_.anomalies())
    out["anomalies"].push_back(anomaly_json(anomaly));
  return json_reply(out);
}

AdminReply AdminApi::events(const AdminRequest& request) {
  tail_.poll();
  if (request.wants_stream) {
    AdminReply reply = text_reply(200, ": sluice\n\n", "text/event-stream");
    reply.stream = true;
    return reply;
  }
  const std::string_view limit_text = request.parameter("limit");
  const auto limit = limit_text.empty() ? std::optional<std::size_t>(100)
                                        : parse_count(limit_text, EventTail::kKept);
  if (!limit) return admin_error(400, "limit is a whole number, at most 1000");
  const std::string_view after_text = request.parameter("after");
  const auto after = parse_count(after_text, std::numeric_limits<std::size_t>::max());
  if (!after_text.empty() && !after) return admin_error(400, "after is the number of an event");
  Json out{{"last", tail_.last()}, {"events", Json::array()}};
  for (const StoredEvent& event :
       after ? tail_.after(*after, *limit) : tail_.latest(*limit, request.parameter("key")))
    out["events"].push_back(event_json(event));
  return json_reply(out);
}

void AdminApi::each_minute() {
  table_.expire();
  const std::vector<KeyRow>& rows = table_.rows();
  history_.sample(rows, source_.totals());
}

std::uint64_t stream_start(const AdminRequest& request, std::uint64_t last) {
  constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();
  if (const auto after = parse_count(request.last_event_id, kAny)) return *after;
  return parse_count(request.parameter("after"), kAny).value_or(last);
}

std::string stream_text(const StoredEvent& event) {
  return "id: " + std::to_string(event.sequence) + "\ndata: " + text_of(event_json(event)) + "\n\n";
}

}  // namespace sluice
