#include "proxy/cli/check.h"

#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include "unit/proxy/folder.h"

using namespace sluice;
using sluice::test::Folder;

namespace {

struct Said {
  int code;
  std::string text;
};

// What it prints, with the folder's own name left out.
Said check(const Folder& folder, const std::vector<std::string>& names,
           const ConfigFlags& flags = {}, const Environment& environment = {}) {
  std::vector<std::string> files;
  for (const std::string& name : names) files.push_back(folder.path(name));
  std::ostringstream out;
  const int code = check_command(files, flags, environment, out);
  std::string text = out.str();
  const std::string root = folder.path("");
  for (auto at = text.find(root); at != std::string::npos; at = text.find(root)) {
    text.erase(at, root.size());
  }
  return {code, text};
}

}  // namespace

TEST_CASE("check: nothing to complain about") {
  const Folder folder;
  folder.write("sluice.toml", "proxy.workers = 1\n");
  folder.write("policies/a.toml", "hosts = ['a.test']\n");
  folder.write("policies/b.toml", "hosts = ['b.test']\n");
  CHECK(check(folder, {"policies/a.toml"}).text == "ok: 0 configurations, 1 policy\n");
  CHECK(check(folder, {"policies"}).text == "ok: 0 configurations, 2 policies\n");
  CHECK(check(folder, {"sluice.toml"}).text == "ok: 1 configuration, 0 policies\n");
  CHECK(check(folder, {"sluice.toml", "policies"}).text == "ok: 1 configuration, 2 policies\n");
  CHECK(check(folder, {"policies"}).code == 0);
  ConfigFlags flags;
  flags.config = folder.path("sluice.toml");
  CHECK(check(folder, {}, flags).text == "ok: 1 configuration, 2 policies\n");  // as `run` would
}

TEST_CASE("check: a configuration by another name is known by its sections") {
  const Folder folder;
  folder.write("mine.toml", "[proxy]\nworkers = 1\n");
  folder.write("wrong.toml", "[proxy]\nworker = 1\n");
  folder.write("stray.toml", "hosts = ['a.test']\n[proxy]\nworkers = 1\n");
  CHECK(check(folder, {"mine.toml"}).text == "ok: 1 configuration, 0 policies\n");
  CHECK(check(folder, {"wrong.toml"})
            .text.starts_with(
                "wrong.toml:2:1: unknown key 'worker' in [proxy]; did you mean 'workers'?\n"));
  CHECK(check(folder, {"stray.toml"}).code == 2);
}

TEST_CASE("check: warns of what needs to look inside HTTPS, and is content otherwise") {
  const Folder folder;
  folder.write("priced.toml", "hosts = ['a.test']\n[cost]\nheader = 'x-cost'\n");
  folder.write("seen.toml", "hosts = ['b.test']\nintercept = true\n[cost]\nheader = 'x-cost'\n");
  folder.write("plain.toml", "hosts = ['c.test']\n[pace]\nmin_delay = '1s'\n");
  const std::string warned =
      "priced.toml: warning: of HTTPS only the CONNECT is seen, because intercept is false; there, "
      "this does not do what it says: cost.header\n";
  const Said said = check(folder, {"priced.toml", "seen.toml", "plain.toml"});
  CHECK(said.text == warned + "ok: 0 configurations, 3 policies\n");
  CHECK(said.code == 0);
  folder.write("sluice.toml", "tls.intercept = 'all'\n");
  CHECK(check(folder, {"sluice.toml", "priced.toml"}).text == "ok: 1 configuration, 1 policy\n");
  folder.write("sluice.toml", "tls.intercept = 'never'\n");
  CHECK(check(folder, {"sluice.toml", "seen.toml"})
            .text.starts_with("seen.toml: warning: of HTTPS only the CONNECT is seen, because "
                              "tls.intercept is \"never\";"));
}

TEST_CASE("check: warns of a webhook that everybody can read, and does not show it") {
  namespace fs = std::filesystem;
  const Folder folder;
  folder.write("sluice.toml", "alerts.webhook = 'https://hooks.test/SECRET'\n");
  const auto others = [&](fs::perm_options how) {
    fs::permissions(folder.path("sluice.toml"), fs::perms::others_read, how);
  };
  others(fs::perm_options::add);
  const Said said = check(folder, {"sluice.toml"});
  CHECK(said.text.starts_with("sluice.toml: warning: everybody on this machine can read"));
  CHECK(said.text.find("SECRET") == std::string::npos);
  CHECK(said.code == 0);
  others(fs::perm_options::remove);
  CHECK(check(folder, {"sluice.toml"}).text == "ok: 1 configuration, 0 policies\n");
  folder.write("sluice.toml", "proxy.workers = 1\n");
  others(fs::perm_options::add);
  CHECK(check(folder, {"sluice.toml"}).text == "ok: 1 configuration, 0 policies\n");
}

TEST_CASE("check: every error with its line and a caret, then a count") {
  const Folder folder;
  folder.write("sluice.toml", "[proxy]\nworker = 1\n");
  folder.write("policies/a.toml", "hosts = ['a.test']\n[breaker]\nconsecutive = 'x'\nwindw = 1\n");
  folder.write("policies/b.toml", "hosts = ['b.test']\n");
  folder.write("policies/c.toml", "hosts = ['b.test']\n");
  const Said said = check(folder, {"sluice.toml", "policies"});
  CHECK(said.code == 2);
  CHECK(said.text ==
        "sluice.toml:2:1: unknown key 'worker' in [proxy]; did you mean 'workers'?\n"
        "  worker = 1\n"
        "  ^\n"
        "policies/a.toml:3:15: breaker.consecutive must be a whole number, not a string\n"
        "  consecutive = 'x'\n"
        "                ^\n"
        "policies/a.toml:4:1: unknown key 'windw' in [breaker]; did you mean 'window'?\n"
        "  windw = 1\n"
        "  ^\n"
        "policies/c.toml:1:10: \"b.test\" is already in policies/b.toml\n"
        "  hosts = ['b.test']\n"
        "           ^\n"
        "4 errors in 3 files\n");
}

TEST_CASE("check: one error in one file; what is not there; what is not TOML") {
  const Folder folder;
  folder.write("a.toml", "hosts = ['a.test'\nmode = 1");
  const Said broken = check(folder, {"a.toml"});
  CHECK(broken.code == 2);
  CHECK(broken.text.starts_with("a.toml:2:1: not valid TOML: "));
  CHECK(broken.text.ends_with("  mode = 1\n  ^\n1 error in 1 file\n"));
  CHECK(check(folder, {"none.toml"}).text ==
        "none.toml:1:1: cannot be read: No such file or directory\n1 error in 1 file\n");
}

TEST_CASE("check: the files that a policy or tls.extra_ca names must be there") {
  const Folder folder;
  folder.write("a.toml", "hosts = ['a.test']\nextra_ca = '/none/ca.pem'\n");
  const Said said = check(folder, {"a.toml"});
  CHECK(said.code == 2);
  CHECK(said.text.starts_with("a.toml:2:12: extra_ca /none/ca.pem cannot be used: No such file"));
  CHECK(said.text.ends_with("\n  extra_ca = '/none/ca.pem'\n             ^\n1 error in 1 file\n"));
  folder.write("a.toml", "hosts = ['a.test']\nclient_cert = '/none/c'\nclient_key = '/none/k'\n");
  CHECK(check(folder, {"a.toml"}).text.starts_with("a.toml:2:15: client_cert /none/c cannot"));
  folder.write("sluice.toml", "[tls]\nextra_ca = '/none/ca.pem'\n");
  CHECK(check(folder, {"sluice.toml"})
            .text.starts_with("sluice.toml:1:1: tls.extra_ca /none/ca.pem cannot be used: "));
}

TEST_CASE("check: [defaults] are the base of the policies, the environment counts too") {
  const Folder folder;
  folder.write("sluice.toml", "[defaults.pace]\ncap = '5s'\n");
  folder.write("a.toml", "hosts = ['a.test']\npace.cap = '1s'\npace.min_delay = '2s'\n");
  CHECK(check(folder, {"sluice.toml", "a.toml"}).code == 2);
  CHECK(
      check(folder, {}, {}, {{{"SLUICE_LOG_LEVEL", "loud"}}}).text ==
      "environment:1:18: log.level must be \"trace\", \"debug\", \"info\", \"warn\", \"error\" or "
      "\"off\", not \"loud\"\n"
      "  SLUICE_LOG_LEVEL=loud\n"
      "                   ^\n"
      "1 error in 1 file\n");
}
