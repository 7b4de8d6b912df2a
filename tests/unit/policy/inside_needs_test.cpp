// Which settings of a policy need somebody who looks inside HTTPS.
#include "policy/inside_needs.h"

#include <doctest/doctest.h>

using namespace sluice;

TEST_CASE("inside needs: what is about single requests") {
  using Names = std::vector<std::string>;
  struct Row {
    const char* name;
    void (*set)(Policy&);
    Names needs;
  };
  const Row rows[] = {
      {"nothing", [](Policy&) {}, {}},
      {"a pace is kept by tunnels, too", [](Policy& p) { p.rules.pace.min_delay = 1s; }, {}},
      {"paths", [](Policy& p) { p.paths = {"/api/*"}; }, {"paths"}},
      {"a role", [](Policy& p) { p.roles.resize(1); }, {"roles"}},
      {"who asks", [](Policy& p) { p.scope = Scope::credential; }, {"scope = \"credential\""}},
      {"robots.txt", [](Policy& p) { p.rules.pace.crawl_delay = true; }, {"pace.crawl_delay"}},
      {"prices",
       [](Policy& p) {
         p.rules.cost = {.per_request = 0.1, .paths = {{"/x", 1.0}}, .header = "x-cost"};
       },
       {"cost.per_request", "cost.paths", "cost.header"}},
      {"a role's price",
       [](Policy& p) {
         p.roles.resize(1);
         p.roles[0].rules.cost.header = "x-cost";
       },
       {"roles", "cost.header"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Policy policy;
    row.set(policy);
    CHECK(inside_needs(policy) == row.needs);
  }
}
