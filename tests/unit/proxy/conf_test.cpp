// What is shipped in conf/ parses, says what is true, and forgets no setting.
#include <doctest/doctest.h>

#include <set>
#include <sstream>

#include "policy/policy_set.h"
#include "proxy/config_reader.h"
#include "proxy/policy_dir.h"

namespace sluice {
namespace {

const std::string kConf = SLUICE_SOURCE_DIR "/conf";

std::string text_of(const std::string& file) {
  const Result<std::string> text = read_text_file(file);
  REQUIRE_MESSAGE(text, file);
  return *text;
}

std::string rendered(const Diagnostics& problems) {
  std::string out;
  for (const Diagnostic& problem : problems) out += render(problem);
  return out;
}

// "#listen = …" is a setting that is commented out, "# Where …" is prose.
bool is_quiet_setting(const std::string& line) {
  return line.size() > 1 && line[0] == '#' && line[1] >= 'a' && line[1] <= 'z';
}

std::string with_every_setting_on(const std::string& text) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) {
    out += (is_quiet_setting(line) ? line.substr(1) : line) + "\n";
  }
  return out;
}

struct Shown {
  std::set<std::string> sections, settings;
};

Shown shown_in(const std::string& text) {
  std::istringstream in(text);
  Shown out;
  std::string section;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('[')) out.sections.insert(section = line.substr(1, line.find(']') - 1));
    if (is_quiet_setting(line)) {
      out.settings.insert(section + "." + line.substr(1, line.find(' ') - 1));
    }
  }
  return out;
}

}  // namespace

TEST_CASE("conf/sluice.toml: as shipped it is the defaults") {
  const LoadedConfig loaded = read_config_text(text_of(kConf + "/sluice.toml"), "sluice.toml");
  CHECK(rendered(loaded.problems) == "");
  CHECK(loaded.config == Config());
  CHECK(loaded.base == Policy());
}

TEST_CASE("conf/sluice.toml: every value it shows is the default") {
  const LoadedConfig loaded =
      read_config_text(with_every_setting_on(text_of(kConf + "/sluice.toml")), "sluice.toml");
  CHECK(rendered(loaded.problems) == "");
  Config expected;
  expected.access.clients_given = true;
  CHECK(loaded.config == expected);
  Policy base;
  base.intercept = false;  // written down it counts even under `sluice exec`
  CHECK(loaded.base == base);
}

TEST_CASE("conf/sluice.toml: no setting is missing") {
  const Shown shown = shown_in(text_of(kConf + "/sluice.toml"));
  for (const auto& variable : setting_variables()) {
    const std::string& setting = variable.second;
    // A table inside a value, such as breaker.window.within, is shown with that value.
    const bool with_it = shown.settings.contains(setting.substr(0, setting.rfind('.')));
    const bool is_shown = shown.settings.contains(setting) || shown.sections.contains(setting);
    CHECK_MESSAGE((is_shown || with_it), setting);
  }
}

TEST_CASE("conf/policies: all parse, together, and each says where its numbers are from") {
  const PolicyLoad load = load_policies(kConf + "/policies", Policy());
  CHECK(rendered(load.problems) == "");
  std::set<std::string> names;
  for (const PolicyFile& file : load.in_force) {
    CAPTURE(file.file);
    names.insert(file.policy.name);
    CHECK(text_of(file.file).find("https://") != std::string::npos);
  }
  for (const char* name : {"github", "openai", "anthropic", "youtube", "deviantart", "discord",
                           "reddit", "x", "shopify", "stripe", "atlassian", "hubspot", "crossref",
                           "arxiv", "wikipedia", "polite-crawler"}) {
    CHECK_MESSAGE(names.contains(name), name);
  }
}

TEST_CASE("conf/policies: who answers for what") {
  const PolicyLoad load = load_policies(kConf + "/policies", Policy());
  struct Row {
    const char *host, *path, *policy, *role;
  };
  const Row rows[] = {
      {"api.github.com", "/repos/a/b", "github", ""},
      {"api.github.com", "/search/issues?q=x", "github", "search"},
      {"api.github.com", "/search/code?q=x", "github", "code-search"},
      {"api.openai.com", "/v1/chat/completions", "openai", ""},
      {"api.anthropic.com", "/v1/messages", "anthropic", ""},
      {"youtube.googleapis.com", "/youtube/v3/search", "youtube", "search"},
      {"www.googleapis.com", "/drive/v3/files", "polite-crawler", ""},
      {"www.deviantart.com", "/api/v1/oauth2/gallery/all", "deviantart", ""},
      {"discord.com", "/api/v10/channels/1", "discord", ""},
      {"discord.com", "/api/v10/interactions/1/x/callback", "discord", "interactions"},
      {"oauth.reddit.com", "/r/all", "reddit", ""},
      {"api.x.com", "/2/tweets", "x", ""},
      {"shop.myshopify.com", "/admin/api/2024-10/orders.json", "shopify", ""},
      {"shop.myshopify.com", "/admin/api/2024-10/graphql.json", "shopify", "graphql"},
      {"api.stripe.com", "/v1/charges/search", "stripe", "search"},
      {"me.atlassian.net", "/rest/api/3/issue/A-1", "atlassian", ""},
      {"api.hubapi.com", "/crm/v3/objects/contacts/search", "hubspot", "search"},
      {"api.crossref.org", "/works", "crossref", "lists"},
      {"api.crossref.org", "/works/10.1/2", "crossref", ""},
      {"export.arxiv.org", "/api/query", "arxiv", ""},
      {"en.wikipedia.org", "/w/api.php", "wikipedia", ""},
      {"anything.example", "/", "polite-crawler", ""},
      // A CONNECT: of a tunnel only the host is known.
      {"youtube.googleapis.com", "", "youtube", ""},
      {"www.googleapis.com", "", "polite-crawler", ""},
      {"discord.com", "", "discord", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.host);
    CAPTURE(row.path);
    const PolicyMatch match = load.set->match(row.host, 443, row.path);
    CHECK(match.policy->name == row.policy);
    CHECK((match.role == nullptr ? "" : match.role->name) == row.role);
  }
}

}  // namespace sluice
