// Families of siblings are packed into units.
#include "train/units.h"

#include <algorithm>
#include <stdexcept>

namespace longleaf {

namespace {

// Nodes are numbered breadth first: the children of a range of nodes are a range.
struct NodeRange {
  int32_t begin, end;

  int32_t size() const { return end - begin; }
  NodeRange children(const TreeView& tree) const { return {tree.first_child[begin], tree.first_child[end]}; }
};

// How many of the levels below a node fit into the lanes together, at most `depth`.
int fitting_depth(const TreeView& tree, int32_t root, int depth) {
  NodeRange level{root, root + 1};
  int32_t nodes = 0;
  for (int d = 0; d < depth; ++d) {
    level = level.children(tree);
    nodes += level.size();
    if (nodes > kLanes) return d;
  }
  return depth;
}

// Levels below few nodes are trained together, as many as fit: a row that passes three binary levels is visited once
// instead of three times. The subtrees of such a band interleave in the order of nodes, so that the band is one element
// of training_units(). At the top of the tree that is small beside the whole.
constexpr int32_t kMostSubtrees = 64;

int band_depth(const TreeView& tree, NodeRange level) {
  if (level.size() > kMostSubtrees) return 1;
  int depth = 0;
  for (NodeRange below = level.children(tree); below.size() && depth < kLanes; below = below.children(tree)) ++depth;
  for (int32_t root = level.begin; root < level.end; ++root) depth = fitting_depth(tree, root, depth);
  return std::max(depth, 1);
}

class UnitPlanner {
 public:
  UnitPlanner(const TreeView& tree, const NodeRows& rows) : tree_(tree), rows_(rows) {}

  std::vector<Unit> plan() {
    int depth_above = 1;
    for (NodeRange level{0, 1}; level.size();) {
      const int depth = band_depth(tree_, level);
      if (depth > 1 || depth_above > 1) closed_ = units_.size();
      for (int32_t root = level.begin; root < level.end; ++root) add_subtree(root, depth);
      for (int d = 0; d < depth; ++d) level = level.children(tree_);
      depth_above = depth;
    }
    return std::move(units_);
  }

 private:
  void add_subtree(int32_t root, int depth) {
    Unit unit;
    unit.cost = double(rows_.of(root).size());
    NodeRange parents{root, root + 1};
    for (int d = 0; d < depth; ++d, parents = parents.children(tree_))
      for (int32_t parent = parents.begin; parent < parents.end; ++parent) add_family(parent, unit);
    if (unit.nodes.empty()) return;
    if (unit.nodes.size() > size_t(kLanes))
      add_wide(unit);
    else if (units_.size() > closed_ && units_.back().nodes.size() + unit.nodes.size() <= size_t(kLanes))
      join(unit, units_.back());
    else
      units_.push_back(std::move(unit));
  }

  void add_family(int32_t parent, Unit& unit) const {
    const NodeRange children = NodeRange{parent, parent + 1}.children(tree_);
    if (children.size() == 0) return;
    unit.families.push_back(parent);
    for (int32_t child = children.begin; child < children.end; ++child) unit.nodes.push_back(child);
  }

  static void join(const Unit& unit, Unit& into) {
    into.families.insert(into.families.end(), unit.families.begin(), unit.families.end());
    into.nodes.insert(into.nodes.end(), unit.nodes.begin(), unit.nodes.end());
    into.cost += unit.cost;
  }

  // A family of several blocks of lanes, chunk by chunk.
  void add_wide(const Unit& family) {
    for (auto first = family.nodes.begin(); first != family.nodes.end();) {
      const auto last = first + std::min<int64_t>(kChunkWidth, family.nodes.end() - first);
      const int64_t blocks = (last - first + kLanes - 1) / kLanes;
      units_.push_back({family.families, {first, last}, family.cost * double(blocks)});
      first = last;
    }
  }

  const TreeView& tree_;
  const NodeRows& rows_;
  std::vector<Unit> units_;
  size_t closed_ = 0;  // to so many of the units nothing can be joined any more
};

}  // namespace

std::vector<Unit> units_between(const TreeView& tree, const NodeRows& rows, int32_t first_node, int32_t last_node) {
  std::vector<Unit> units = UnitPlanner(tree, rows).plan();
  std::erase_if(units, [&](const Unit& unit) {
    return unit.nodes.front() < first_node || *std::max_element(unit.nodes.begin(), unit.nodes.end()) >= last_node;
  });
  int64_t nodes = 0;
  for (const Unit& unit : units) nodes += int64_t(unit.nodes.size());
  if (nodes < last_node - std::max(first_node, 1))
    throw std::invalid_argument("first_node and last_node must be where units begin");
  std::stable_sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) { return a.cost > b.cost; });
  return units;
}

TrainingUnits training_units(const TreeView& tree, const NodeRows& rows) {
  TrainingUnits out;
  int32_t nodes = 1;  // of the units so far, and the root
  for (const Unit& unit : UnitPlanner(tree, rows).plan()) {
    const bool begins = unit.nodes.front() == nodes;  // inside a band, nodes behind the unit's first one come before it
    if (begins) out.first_node.push_back(out.first_node.empty() ? 0 : nodes);
    if (begins) out.cost.push_back(0);
    out.cost.back() += unit.cost;
    nodes += int32_t(unit.nodes.size());
  }
  out.first_node.push_back(int32_t(tree.nodes));
  return out;
}

ChunkPlan::ChunkPlan(const TreeView& tree, int32_t first, int32_t last) : node(chunk_nodes(tree)), first_node(first) {
  const auto chunk_at_node = [&](int32_t v) {
    return int32_t(std::lower_bound(node.begin(), node.end(), v) - node.begin());
  };
  first_chunk = chunk_at_node(first);
  last_chunk = chunk_at_node(last);
  for (int32_t c = first_chunk; c < last_chunk; ++c) of.insert(of.end(), size_t(node[c + 1] - node[c]), c);
}

std::vector<int32_t> ChunkPlan::chunks_of(std::span<const int32_t> nodes) const {
  std::vector<int32_t> chunks;
  for (int32_t v : nodes)
    if (chunks.empty() || chunks.back() != chunk_of(v)) chunks.push_back(chunk_of(v));
  return chunks;
}

}  // namespace longleaf
