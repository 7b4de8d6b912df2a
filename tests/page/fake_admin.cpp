// The admin side over a source that the page's tests command: an order per line on stdin (JSON),
// "ok" per line on stdout when it holds. Ends with its input. First line: address and token.
#include <iostream>
#include <nlohmann/json.hpp>

#include "proxy/admin/server.h"
#include "proxy/clock.h"
#include "unit/proxy/fake_source.h"

using namespace sluice;
using nlohmann::json;
using testing::FakeSource;

namespace {

constexpr const char* kHosts[] = {
    "api.github.com",     "api.openai.com",       "api.anthropic.com", "www.googleapis.com",
    "oauth.reddit.com",   "discord.com",          "api.stripe.com",    "api.crossref.org",
    "export.arxiv.org",   "en.wikipedia.org",     "api.hubapi.com",    "api.twitter.com",
    "www.deviantart.com", "myshop.myshopify.com", "api.atlassian.com", "registry.npmjs.org",
    "static.example.com", "api.weather.gov",      "nominatim.test",    "api.example.org:8443",
};

KeyDetail key_like(std::string name, std::size_t i) {
  using testing::closed_key;
  KeyDetail detail = closed_key(name, 40 + i * 7919 % 20000);
  detail.row.policy = i % 5 == 0 ? "polite-crawler" : "default";
  detail.row.in_flight = i % 3 == 0 ? static_cast<std::uint32_t>(i % 5) : 0;
  if (i % 19 == 4) {
    detail = testing::shut_key(name, std::chrono::seconds(41 + i % 7 * 300), 429,
                               "API rate limit exceeded for this account");
  } else if (i % 23 == 9) {
    detail.row.phase = Phase::half_open;
    detail.row.cause = Cause::probe_failed;
    detail.row.level = 2;
    detail.sentence = name + " waits for a probe after a probe that met 503 Service Unavailable";
  } else if (i % 4 == 1) {
    detail.row.delay = std::chrono::milliseconds(180 + i % 11 * 370);
    detail.row.held = i % 8 == 1 ? static_cast<std::uint32_t>(1 + i % 7) : 0;
    detail.pace = "its headers allow 60 requests a minute, so one goes every " +
                  std::to_string(180 + i % 11 * 370) + " ms";
  }
  return detail;
}

void demo(FakeSource& source, std::size_t count) {
  source.with([&](FakeSource::State& state) {
    state.keys.clear();
    for (std::size_t i = 0; i < count; ++i) {
      std::string name = i < std::size(kHosts) ? kHosts[i] : "";
      if (name.empty()) name = "host-" + std::to_string(i) + ".example.net";
      state.keys[name] = key_like(name, i);
    }
    state.busy = true;
    state.totals.started = utc_now() - 26h;
    state.totals.clients = 37;
    state.totals.in_flight = 12;
    state.totals.held = 5;
  });
}

void fill_sections(FakeSource& source) {
  source.with([](FakeSource::State& state) {
    const UtcTime now = utc_now();
    state.budget = {"USD",
                    {{"daily", 10, 6.42, 0.2, 0.5, 0.8, now + 7h},
                     {"monthly", 200, 61.9, 0, 0.5, 0.8, now + 280h}},
                    {{"policy", "openai", 5.1, 812}, {"job", "nightly", 1.32, 97}}};
    state.anomalies = {{"thrash", "api.openai.com",
                        "GET /v1/models was asked for 41 times in 5 minutes by nightly", "throttle",
                        now - 4min, std::nullopt},
                       {"burst", "api.github.com", "88 requests in a minute, usually 6", "alert",
                        now - 3h, now - 2h}};
    state.jobs = {{"nightly", 97, 500, 2, 0, false, 1.32}, {"backfill", 40, 40, 0, 20, true, 0}};
    state.policy_problems = {
        {"policies/reddit.toml:3:8", "unknown key \"hots\"; did you mean hosts?"}};
  });
  source.tell(EventKind::policy, "",
              "policies/reddit.toml was refused: the last good version stays");
  source.tell(EventKind::transition, "api.anthropic.com",
              "api.anthropic.com is cooling down after 429 Too Many Requests: 41 s left");
  source.tell(EventKind::anomaly, "api.openai.com",
              "api.openai.com: GET /v1/models was asked for 41 times in 5 minutes");
  source.tell(EventKind::budget, "", "half of the daily budget is spent: 5.00 of 10.00 USD");
  source.tell(EventKind::transition, "api.stripe.com",
              "api.stripe.com lets requests through again");
}

// The same hostile text wherever somebody else's words can appear.
void poison(FakeSource& source, const std::string& text) {
  KeyDetail key = testing::shut_key(text, 300s, 429, text);
  key.row.policy = text;
  key.reason = text;
  key.pace = text;
  key.sentence = text + " is cooling down";
  source.with([&](FakeSource::State& state) {
    state.keys[text] = key;
    state.anomalies.push_back({text, text, text, text, utc_now(), std::nullopt});
    state.jobs.push_back({text, 1, 0, 0, 0, true, 0});
    state.policy_problems.push_back({text, text});
    state.budget.currency = text;
    state.budget.periods = {{text, 10, 5, 0, 0.5, 0.8, utc_now() + 1h}};
    state.budget.lines = {{text, text, 1, 1}};
    state.totals.stop = {true, text, utc_now()};
    state.health = {false, text};
    state.totals.refusals = {{text, 7}};
  });
  source.tell(EventKind::transition, text, text);
}

void obey(FakeSource& source, const json& order) {
  const std::string what = order.at("do");
  const std::string key = order.value("key", "");
  if (what == "demo") demo(source, order.at("keys"));
  if (what == "sections") fill_sections(source);
  if (order.contains("calm")) source.with([](auto& state) { state.policy_problems.clear(); });
  if (what == "poison") poison(source, order.at("text"));
  if (what == "event") source.tell(EventKind::transition, key, order.at("text"));
  if (what == "put")
    source.with([&](auto& state) { state.keys[key] = testing::closed_key(key, 5); });
  if (what == "fail") source.with([&](auto& state) { state.failing = order.at("why"); });
  if (what == "trip") {
    source.with([&](auto& state) {
      state.keys[key] =
          testing::shut_key(key, std::chrono::seconds(order.at("seconds")), 429, "slow down");
    });
    source.tell(EventKind::transition, key, key + " is cooling down after 429 Too Many Requests");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  Config config;
  config.admin.listen = "127.0.0.1:0";
  FakeSource source;
  auto server = AdminServer::make(config, argv[1]);
  if (!server) {
    std::cerr << server.error() << "\n";
    return 1;
  }
  AdminOptions options;
  options.minute = std::chrono::milliseconds(std::stoi(argv[2]));
  source.with([](auto& state) { state.totals.started = utc_now(); });
  (*server)->start(source, std::move(options));
  std::cout << (*server)->address().text() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const json order = json::parse(line);
    if (order.at("do") == "orders") {
      std::cout << json(source.with([](auto& state) { return state.orders; })).dump() << std::endl;
      continue;
    }
    obey(source, order);
    std::cout << "ok" << std::endl;
  }
  return 0;
}
