#include "policy/fair_queue.h"

#include <algorithm>

namespace sluice {
namespace {

// Of those who are ahead of their turn and do not wait, so many are remembered.
constexpr std::size_t most_idle = 4096;

}  // namespace

FairQueue::Node& FairQueue::child(Node& parent, std::uint64_t key) {
  auto& slot = parent.children[key];
  if (!slot) {
    slot = std::make_unique<Node>();
    slot->key = key;
    slot->parent = &parent;
    slot->tag = parent.passed;
  }
  return *slot;
}

// Somebody waits in this node now, so it and those above it wait for their turn.
void FairQueue::wake(Node& node) {
  Node* const parent = node.parent;
  if (!parent) return;
  const bool parent_waits = parent->busy();
  parent->idle.erase({node.tag, node.key});
  node.tag = std::max(node.tag, parent->passed);
  node.order = ++order_;
  parent->waiting.insert({{node.tag, node.order}, &node});
  if (!parent_waits) wake(*parent);
}

// Nobody waits in it any more.
void FairQueue::rest(Node& node) {
  Node* const parent = node.parent;
  if (!parent) return;
  parent->waiting.erase({node.tag, node.order});
  const bool ahead = node.tag > parent->passed;
  if (ahead) {
    parent->idle.insert({node.tag, node.key});
  } else {
    parent->children.erase(node.key);
  }
  forget_idle(*parent);
  if (!parent->busy()) rest(*parent);
}

// Those whom the others have caught up with are nobody special.
void FairQueue::forget_idle(Node& parent) {
  auto& idle = parent.idle;
  while (!idle.empty() && (idle.begin()->first <= parent.passed || idle.size() > most_idle)) {
    parent.children.erase(idle.begin()->second);
    idle.erase(idle.begin());
  }
}

bool FairQueue::push(const Waiter& waiter, bool first) {
  if ((!first && places_.size() >= most_) || places_.contains(waiter.id)) return false;
  Node& connection = child(child(child(root_, waiter.job), waiter.client), waiter.connection);
  const bool waits = connection.busy();
  auto& line = connection.line;
  const auto at = line.insert(first ? line.begin() : line.end(), waiter);
  places_.insert({waiter.id, {&connection, at}});
  deadlines_.insert({waiter.deadline, waiter.id});
  if (!waits) wake(connection);
  if (first) refund(connection);
  return true;
}

// The turn that it had before came to nothing: it is still owed, to all on the way.
void FairQueue::refund(Node& connection) {
  for (Node* node = &connection; node->parent; node = node->parent) {
    auto& waiting = node->parent->waiting;
    waiting.erase({node->tag, node->order});
    if (node->tag > 0) --node->tag;
    waiting.insert({{node->tag, node->order}, node});
  }
}

const FairQueue::Node* FairQueue::next_connection() const {
  const Node* node = &root_;
  while (!node->waiting.empty()) node = node->waiting.begin()->second;
  return node->line.empty() ? nullptr : node;
}

const Waiter* FairQueue::front() const {
  const Node* const connection = next_connection();
  return connection ? &connection->line.front() : nullptr;
}

std::optional<Waiter> FairQueue::pop() {
  const Waiter* const next = front();
  if (!next) return std::nullopt;
  const Waiter waiter = *next;
  take_turn(waiter.id);
  return waiter;
}

const Waiter* FairQueue::first_of(const Node& node, const Wanted& wanted) {
  if (!node.line.empty()) return wanted(node.line.front()) ? &node.line.front() : nullptr;
  for (const auto& [turn, child] : node.waiting) {
    if (const Waiter* const found = first_of(*child, wanted)) return found;
  }
  return nullptr;
}

const Waiter* FairQueue::front(const Wanted& wanted) const { return first_of(root_, wanted); }

void FairQueue::take_turn(std::uint64_t id) {
  // Each node on the way has had its turn.
  for (Node* node = places_.at(id).connection; node->parent; node = node->parent) {
    Node& parent = *node->parent;
    parent.waiting.erase({node->tag, node->order});
    parent.passed = std::max(parent.passed, node->tag);
    ++node->tag;
    node->order = ++order_;
    parent.waiting.insert({{node->tag, node->order}, node});
    forget_idle(parent);
  }
  erase(id);
}

bool FairQueue::remove(std::uint64_t id) {
  if (!places_.contains(id)) return false;
  erase(id);
  return true;
}

void FairQueue::erase(std::uint64_t id) {
  const auto place = places_.find(id);
  Node& connection = *place->second.connection;
  deadlines_.erase({place->second.at->deadline, id});
  connection.line.erase(place->second.at);
  places_.erase(place);
  if (!connection.busy()) rest(connection);
}

std::vector<Waiter> FairQueue::expire(Instant now) {
  std::vector<Waiter> gone;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const auto id = deadlines_.begin()->second;
    gone.push_back(*places_.at(id).at);
    erase(id);
  }
  return gone;
}

void FairQueue::set_deadline(std::uint64_t id, Instant deadline) {
  const auto place = places_.find(id);
  if (place == places_.end()) return;
  Waiter& waiter = *place->second.at;
  deadlines_.erase({waiter.deadline, id});
  waiter.deadline = deadline;
  deadlines_.insert({deadline, id});
}

std::optional<Instant> FairQueue::next_deadline() const {
  if (deadlines_.empty() || deadlines_.begin()->first == Instant::max()) return std::nullopt;
  return deadlines_.begin()->first;
}

}  // namespace sluice
