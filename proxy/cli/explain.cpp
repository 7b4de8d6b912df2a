// `sluice explain URL`: which policy and key a request would meet, how they are, and what would
// happen to it now. Asks the same functions as the daemon, on a copy: nothing is changed.
#include <iostream>
#include <nlohmann/json.hpp>

#include "policy/breaker.h"
#include "policy/pacer.h"
#include "policy/sentence.h"
#include "policy/state_key.h"
#include "policy/units.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/forecast.h"
#include "proxy/cli/key_json.h"
#include "proxy/cli/memory.h"
#include "proxy/cli/terminal.h"
#include "proxy/clock.h"
#include "proxy/http/field.h"
#include "proxy/http/target.h"

namespace sluice {
namespace {

struct Question {
  std::string url, method = "GET", job;
  bool json = false;
};

struct Url {
  std::string host, path;
  std::uint16_t port = 0;
  bool https = false;
};

Result<Url> read_url(std::string_view text) {
  constexpr std::string_view kSecure = "https://";
  Url url;
  url.https = equals_ignoring_case(text.substr(0, kSecure.size()), kSecure);
  // The parser reads what clients send to a proxy, and that is never https.
  std::string plain(text);
  if (url.https) plain.replace(0, kSecure.size(), "http://");
  if (plain.find("://") == std::string::npos) plain.insert(0, "http://");
  plain.resize(std::min(plain.find('#'), plain.size()));
  const auto target = parse_absolute_form(plain);
  if (!target) return Error{"\"" + std::string(text) + "\": " + target.error()};
  url.host = target->host;
  url.path = target->path.empty() ? "/" : target->path;
  const bool named =
      target->authority.find(':', target->authority.rfind(']') + 1) != std::string_view::npos;
  url.port = url.https && !named ? 443 : target->port;
  return url;
}

struct Answer {
  Match match;
  bool tunnel = false;  // the path and the answers are not seen
  KnownKey known;
  std::vector<KnownKey> others;         // of other credentials
  std::vector<NotedAnomaly> anomalies;  // of the key, that go on
  Forecast now;
};

bool is_intercepted(const Memory& memory, const Policy& policy) {
  const std::string& intercept = memory.loaded.config.tls.intercept;
  return intercept != "never" && policy.intercept.value_or(intercept == "all");
}

// "policies/github.toml"; empty: it comes from no file.
std::string file_of(const Memory& memory, const Policy& policy) {
  for (const PolicyFile& file : memory.rules->load().in_force)
    if (file.policy.name == policy.name) return file.file;
  return {};
}

// DESIGN §1: an operator's order about a bare host holds for every key of it.
std::optional<KnownKey> shut_above(Memory& memory, std::string_view key, const ClockPair& now) {
  for (const std::string_view name : keys_above(key)) {
    if (name.empty()) break;
    auto loaded = load_host(*memory.store, name, now, memory.rules->longest_cooldown());
    if (loaded && loaded->state.cause == Cause::operator_act &&
        phase_at(loaded->state, now.mono) == Phase::open)
      return KnownKey{std::string(name), std::move(loaded->state)};
  }
  return std::nullopt;
}

void look_up(Answer& answer, Memory& memory, const Url& url, const ClockPair& now) {
  // As the daemon does: a tunnel shows its host only.
  answer.match = memory.rules->match(url.host, url.port, url.path);
  answer.tunnel = url.https && !is_intercepted(memory, *answer.match.policy);
  if (answer.tunnel) answer.match = memory.rules->match(url.host, url.port, "");
  append_state_key(answer.known.key, *answer.match.policy, url.host, url.port, url.https, "");
  if (auto shut = shut_above(memory, answer.known.key, now)) {
    answer.known = std::move(*shut);
    return;
  }
  auto loaded = load_host(*memory.store, answer.known.key, now, memory.rules->longest_cooldown());
  if (loaded) answer.known.state = std::move(loaded->state);
  if (auto noted = find_anomalies(memory, answer.known.key, now)) {
    std::erase_if(*noted, [&](const NotedAnomaly& one) { return one.key != answer.known.key; });
    answer.anomalies = std::move(*noted);
  }
  if (answer.match.policy->scope != Scope::credential) return;
  if (auto keys = find_keys(memory, answer.known.key, now)) {
    for (KnownKey& known : *keys)
      if (known.key != answer.known.key && known.state) answer.others.push_back(std::move(known));
  }
}

std::string scope_word(Scope scope) {
  switch (scope) {
    case Scope::host: return "host";
    case Scope::policy: return "policy";
    case Scope::credential: break;
  }
  return "credential";
}

bool is_sent_again(const Answer& answer, const std::string& method) {
  const auto& methods = answer.match.rules->retry.methods;
  return !answer.tunnel && answer.match.rules->retry.max > 0 &&
         std::find(methods.begin(), methods.end(), method) != methods.end();
}

nlohmann::json as_json(const Question& question, const Answer& answer, const std::string& file,
                       const ClockPair& now) {
  const Match& match = answer.match;
  nlohmann::json out{{"url", question.url},
                     {"method", question.method},
                     {"policy", match.policy->name},
                     {"file", file},
                     {"scope", scope_word(match.policy->scope)},
                     {"mode", match.rules->mode == Mode::observe ? "observe" : "enforce"},
                     {"tunnel", answer.tunnel},
                     {"key", key_json(answer.known, *match.rules, now)},
                     {"decision", answer.now.word},
                     {"sentence", answer.now.text}};
  out["anomalies"] = nlohmann::json::array();
  for (const NotedAnomaly& noted : answer.anomalies) out["anomalies"].push_back(noted_json(noted));
  out["role"] = match.role != nullptr ? nlohmann::json(match.role->name) : nlohmann::json(nullptr);
  out["job"] = question.job.empty() ? nlohmann::json(nullptr) : nlohmann::json(question.job);
  if (match.policy->scope == Scope::credential) {
    out["credentials"] = nlohmann::json::array();
    for (const KnownKey& known : answer.others)
      out["credentials"].push_back(key_json(known, *match.rules, now));
  }
  return out;
}

void print(const Question& question, const Answer& answer, const std::string& file,
           const Terminal& terminal, const ClockPair& now) {
  const auto line = [&](std::string_view name, std::string_view text) {
    std::string padded(name);
    padded.resize(9, ' ');
    std::cout << terminal.paint(padded, Colour::faint) << printable(text) << "\n";
  };
  const Match& match = answer.match;
  line("request", question.method + " " + question.url +
                      (question.job.empty() ? "" : " of job " + question.job));
  line("policy", file.empty() ? match.policy->name + " (no policy names this host)"
                              : match.policy->name + " (" + file + ")");
  line("role", match.role != nullptr ? match.role->name : "none");
  line("key", answer.known.key);
  line("state", sentence(answer.known.key, *answer.known.state, now.mono, now.utc));
  for (const KnownKey& other : answer.others)
    line("", sentence(other.key, *other.state, now.mono, now.utc));
  for (const NotedAnomaly& noted : answer.anomalies) line("anomaly", noted.sentence);
  if (!answer.known.state->said.empty()) line("said", answer.known.state->said);
  const PaceMemory& pace = answer.known.state->pace;
  if (usual_delay(pace) > Duration(0) || pace.cap > 0)
    line("pace",
         pace_sentence(*match.rules, pace_restored(*match.rules, pace, now.mono), now.mono));
  if (answer.tunnel)
    line("tunnel",
         "HTTPS is not looked into: the rules apply to CONNECT, path and answers are "
         "not seen");
  if (is_sent_again(answer, question.method))
    line("retry", "refused by the origin, it would be sent again up to " +
                      std::to_string(match.rules->retry.max) + " times");
  std::cout << terminal.paint("now      ", Colour::faint)
            << terminal.paint(answer.now.text, answer.now.goes ? Colour::green : Colour::red)
            << "\n";
}

int explain(const CommandLine& line, const Question& question) {
  const auto url = read_url(question.url);
  if (!url) return complain(url.error(), kExitUsage);
  OpenedMemory opened = open_memory(line, IfMissing::look);
  if (!opened.memory) return opened.exit_code;
  Memory& memory = *opened.memory;
  const ClockPair now = clock_now();
  Answer answer;
  look_up(answer, memory, *url, now);
  if (!answer.known.state)
    return complain("what is stored about " + answer.known.key + " is damaged: `sluice close " +
                        answer.known.key + "` replaces it",
                    kExitUnreachable);
  answer.now = forecast(memory,
                        {answer.match, answer.known, url->host, url->path, url->port, url->https,
                         answer.tunnel, question.job},
                        now);
  const std::string file = file_of(memory, *answer.match.policy);
  if (question.json) {
    std::cout << to_text(as_json(question, answer, file, now)) << "\n";
  } else {
    print(question, answer, file, Terminal::of_output(line.environment), now);
  }
  return answer.now.goes ? kExitOk : kExitNo;
}

}  // namespace

void add_explain_command(CLI::App& app, CommandLine& line) {
  CLI::App* command =
      add_command(app, "explain", "say what would happen to a request now, and why",
                  "  sluice explain https://api.example.com/v1/things\n"
                  "  sluice explain http://api.example.com/report.pdf --method POST --json\n\n"
                  "Exit code 1: it would be refused.\n");
  add_config_flags(*command, line.flags);
  auto question = std::make_shared<Question>();
  command->add_option("url", question->url, "http://… or https://…")->type_name("URL")->required();
  command->add_option("--method", question->method, "GET unless told")->type_name("METHOD");
  command->add_option("--job", question->job, "the job that asks")->type_name("JOB");
  command->add_flag("--json", question->json, "as JSON");
  command->callback(
      [&line, question] { line.chosen = [&line, question] { return explain(line, *question); }; });
}

}  // namespace sluice
