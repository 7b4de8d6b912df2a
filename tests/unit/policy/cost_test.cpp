#include "policy/cost.h"

#include <doctest/doctest.h>

using namespace sluice;

TEST_CASE("cost: what a request costs before it is sent") {
  CostRules rules;
  rules.per_request = 0.01;
  rules.paths = {{"/v1/images/*", 0.04}, {"/v1/*", 0.002}, {"/free", 0.0}};
  CHECK(request_cost(rules, "/v1/images/new?n=2") == 40000);
  CHECK(request_cost(rules, "/v1/chat") == 2000);
  CHECK(request_cost(rules, "/free?x=/v1/images/") == 0);
  CHECK(request_cost(rules, "/other") == 10000);
  CHECK(request_cost({}, "/other") == 0);
  rules.per_request = 4e-7;
  rules.paths = {{"/less", 1e-12}, {"/none", 0.0}};
  CHECK(request_cost(rules, "/other") == 1);
  CHECK(request_cost(rules, "/less") == 1);
  CHECK(request_cost(rules, "/none") == 0);
}

TEST_CASE("cost: what a header says") {
  struct Row {
    const char* value;
    std::optional<Micros> amount;
  };
  const Row rows[] = {
      {"0.0125", 12500},
      {" 3 ", 3000000},
      {".5", 500000},
      {"2.", 2000000},
      {"0.0000001", 1},
      {"0.1234560", 123456},
      {"999999999", 999999999000000},
      {"1000000000", std::nullopt},
      {"", std::nullopt},
      {".", std::nullopt},
      {"-1", std::nullopt},
      {"5e-04", 500},
      {"5E-4", 500},
      {"1.25e-02", 12500},
      {"125e-4", 12500},
      {"1e3", 1000000000},
      {"1.5e+1", 15000000},
      {".5e1", 5000000},
      {"0.000000001e9", 1000000},
      {"1000000000000e-6", 1000000000000},
      {"1.23456789e-5", 13},
      {"3e-9", 1},
      {"1e-9999", 1},
      {"0e9999", 0},
      {"0e-9999", 0},
      {"1e9", std::nullopt},
      {"1e9999", std::nullopt},
      {"1e", std::nullopt},
      {"1e+", std::nullopt},
      {"e5", std::nullopt},
      {"1e-", std::nullopt},
      {"1e1.5", std::nullopt},
      {"1e99999", std::nullopt},
      {"1e1e1", std::nullopt},
      {"0x10", std::nullopt},
      {"0.0005 USD", std::nullopt},
      {"0.1.2", std::nullopt},
      {"$1", std::nullopt},
      {"1,50", std::nullopt},
      {"nan", std::nullopt},
  };
  for (const Row& row : rows) {
    CAPTURE(row.value);
    CHECK(parse_cost(row.value) == row.amount);
  }
}

TEST_CASE("cost: as people read it") {
  CHECK(format_money(12'500'000) == "12.50");
  CHECK(format_money(12'500) == "0.0125");
  CHECK(format_money(0) == "0.00");
  CHECK(format_money(1) == "0.000001");
  CHECK(format_money(-1'250'000) == "-1.25");
}
