#include "proxy/cost_book.h"

#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/cost_record.h"

namespace sluice {

std::string cost_record_name(CostTerm term, const Span& span, std::string_view kind) {
  return (term == CostTerm::day ? "day/" : "month/") + span.name + "/" + std::string(kind);
}

class CostBook::Pages : public std::enable_shared_from_this<Pages> {
 public:
  Pages(Store& store, Duration reset, Zone zone)
      : store_(store), reset_(reset), zone_(std::move(zone)) {}

  void add(const Entry& entry, UtcTime when) {
    const std::lock_guard guard(mutex_);
    if (when < day_.from || when >= day_.to) {
      day_ = day_of(zone_, reset_, when);
      month_ = month_of(zone_, reset_, when);
    }
    const std::string_view names[] = {entry.policy, entry.host, entry.job};
    for (std::size_t kind = 0; kind < kCostKinds.size(); ++kind) {
      if (names[kind].empty()) continue;
      const CostLine line{std::string(names[kind]), entry.spent, 1};
      add_line(cost_record_name(CostTerm::day, day_, kCostKinds[kind]), day_.to, line);
      add_line(cost_record_name(CostTerm::month, month_, kCostKinds[kind]), month_.to, line);
    }
  }

  void flush() {
    std::map<std::string, Page> written;
    {
      const std::lock_guard guard(mutex_);
      written.swap(pages_);
    }
    for (auto& [name, page] : written) {
      std::vector<CostLine> lines;
      lines.reserve(page.lines.size());
      for (auto& [_, line] : page.lines) lines.push_back(std::move(line));
      auto again = [self = shared_from_this(), name = name, ends = page.ends, lines](bool failed) {
        if (failed) self->put_back(name, ends, lines);
      };
      add_costs(store_, name, std::move(lines), page.ends + kCostsKept,
                {{}, [again](const Result<std::uint64_t>& added) { again(!added); }});
    }
  }

 private:
  struct Page {
    UtcTime ends{};
    std::unordered_map<std::string, CostLine> lines;
  };

  // With the lock held.
  void add_line(const std::string& page_name, UtcTime ends, const CostLine& line) {
    Page& page = pages_[page_name];
    page.ends = ends;
    const bool room = page.lines.size() < kMaxNames || page.lines.contains(line.name);
    const std::string name = room ? line.name : std::string(kOtherCosts);
    CostLine& sum = page.lines.try_emplace(name, CostLine{name}).first->second;
    sum.add(line);
  }

  // The store did not take it: the next flush tries again.
  void put_back(const std::string& name, UtcTime ends, const std::vector<CostLine>& lines) {
    const std::lock_guard guard(mutex_);
    for (const CostLine& line : lines) add_line(name, ends, line);
  }

  Store& store_;
  const Duration reset_;
  const Zone zone_;
  std::mutex mutex_;  // guards all below
  Span day_{}, month_{};
  std::map<std::string, Page> pages_;  // by record
};

CostBook::CostBook(Store& store, Duration reset, Zone zone)
    : pages_(std::make_shared<Pages>(store, reset, std::move(zone))) {}

CostBook::~CostBook() = default;

void CostBook::add(const Entry& entry, UtcTime when) { pages_->add(entry, when); }

void CostBook::flush() { pages_->flush(); }

}  // namespace sluice
