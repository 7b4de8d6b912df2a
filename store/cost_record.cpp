#include "store/cost_record.h"

#include <algorithm>
#include <utility>

#include "store/wire.h"

namespace sluice {
namespace {

constexpr char kCostLetter = 'M';
constexpr std::uint8_t kCostVersion = 1;
constexpr std::size_t kMaxName = 300;  // a host with its port fits

struct Costs {
  UtcTime ends{};
  std::vector<CostLine> lines;
};

std::string cost_key(std::string_view name) { return std::string(kCostPrefix).append(name); }

std::string encode(const Costs& costs) {
  WireWriter fields;
  fields.number(costs.ends.time_since_epoch().count());
  fields.number(static_cast<std::uint16_t>(costs.lines.size()));
  for (const CostLine& line : costs.lines) {
    fields.number(static_cast<std::uint16_t>(line.name.size()));
    fields.text(line.name);
    fields.number(line.spent);
    fields.number(line.requests);
  }
  return seal({kCostLetter, kCostVersion, 1}, fields.bytes());
}

Result<Costs> decode(std::string_view bytes) {
  const auto fields = unseal(bytes, kCostLetter, kCostVersion);
  if (!fields) return Error{fields.error()};
  WireReader reader(*fields);
  Costs costs;
  costs.ends = UtcTime{Duration{reader.number<std::int64_t>()}};
  const auto count = reader.number<std::uint16_t>();
  if (count > kMaxCostLines + 1) return Error{"there are too many lines"};
  for (std::uint16_t i = 0; i < count && reader.ok(); ++i) {
    CostLine line;
    line.name = reader.text(reader.number<std::uint16_t>());
    line.spent = reader.number<Micros>();
    line.requests = reader.number<std::uint64_t>();
    costs.lines.push_back(std::move(line));
  }
  if (!reader.ok()) return Error{"the record of costs ends too early"};
  return costs;
}

CostLine& line_of(std::vector<CostLine>& lines, std::string_view name) {
  const auto found = std::find_if(lines.begin(), lines.end(),
                                  [&](const CostLine& line) { return line.name == name; });
  return found != lines.end() ? *found : lines.emplace_back(CostLine{std::string(name)});
}

// By what they cost, and the rest behind all others.
bool before(const CostLine& a, const CostLine& b) {
  const bool a_rest = a.name == kOtherCosts, b_rest = b.name == kOtherCosts;
  if (a_rest != b_rest) return b_rest;
  if (a.spent != b.spent) return a.spent > b.spent;
  return a.requests != b.requests ? a.requests > b.requests : a.name < b.name;
}

void put_in_order(std::vector<CostLine>& lines) {
  std::sort(lines.begin(), lines.end(), before);
  const bool has_rest = !lines.empty() && lines.back().name == kOtherCosts;
  if (lines.size() <= kMaxCostLines + (has_rest ? 1 : 0)) return;
  CostLine rest{std::string(kOtherCosts)};
  for (std::size_t i = kMaxCostLines; i < lines.size(); ++i) rest.add(lines[i]);
  lines.resize(kMaxCostLines);
  lines.push_back(std::move(rest));
}

}  // namespace

void add_costs(Store& store, std::string_view name, std::vector<CostLine> more, UtcTime ends,
               Completion done) {
  store.update(
      cost_key(name),
      [more = std::move(more), ends](std::optional<std::string_view> current) {
        auto known = current ? decode(*current) : Result<Costs>(Costs{});
        // One that cannot be read is begun anew: nothing is decided by it.
        Costs costs = known ? std::move(*known) : Costs{};
        for (const CostLine& line : more) {
          line_of(costs.lines, std::string_view(line.name).substr(0, kMaxName)).add(line);
        }
        costs.ends = std::max(costs.ends, ends);
        put_in_order(costs.lines);
        return Change{Change::Kind::put, encode(costs), 1};
      },
      std::move(done));
}

Result<std::vector<CostLine>> load_costs(Store& store, std::string_view name) {
  const auto read = store.get(cost_key(name));
  if (!read) return Error{read.error()};
  if (!read->value) return std::vector<CostLine>{};
  auto costs = decode(*read->value);
  if (!costs) return Error{costs.error()};
  return std::move(costs->lines);
}

bool costs_are_over(std::string_view bytes, UtcTime now) {
  const auto costs = decode(bytes);
  return !costs || costs->ends <= now;
}

}  // namespace sluice
