// Families of siblings are packed into units, in breadth-first order.
#include "units.h"

#include <algorithm>
#include <stdexcept>

namespace longleaf {

namespace {

double unit_blocks(int64_t children) { return double((children + kLanes - 1) / kLanes); }

std::vector<Unit> plan_units(const TreeView& tree, const NodeRows& rows) {
  std::vector<Unit> units;
  for (int64_t v = 0; v < tree.nodes; ++v) {
    const int32_t begin = tree.first_child[v], end = tree.first_child[v + 1];
    if (begin == end) continue;
    const double size = double(rows.of(v).size());
    const bool joins = !units.empty() && end - units.back().first_child <= kLanes;
    if (joins) {
      units.back().families.push_back(int32_t(v));
      units.back().last_child = end;
      units.back().cost += size;
      continue;
    }
    for (int32_t first = begin; first < end; first += kChunkWidth) {
      const int32_t last = std::min(first + kChunkWidth, end);
      units.push_back({{int32_t(v)}, first, last, size * unit_blocks(last - first)});
    }
  }
  return units;
}

}  // namespace

std::vector<Unit> units_between(const TreeView& tree, const NodeRows& rows, int32_t first_node, int32_t last_node) {
  std::vector<Unit> units = plan_units(tree, rows);
  std::erase_if(units, [&](const Unit& unit) { return unit.last_child <= first_node || unit.first_child >= last_node; });
  if (!units.empty() && (units.front().first_child < first_node || units.back().last_child > last_node))
    throw std::invalid_argument("first_node and last_node must be where units begin");
  std::stable_sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) { return a.cost > b.cost; });
  return units;
}

TrainingUnits training_units(const TreeView& tree, const NodeRows& rows) {
  TrainingUnits out;
  for (const Unit& unit : plan_units(tree, rows)) {
    out.first_node.push_back(out.first_node.empty() ? 0 : unit.first_child);
    out.cost.push_back(unit.cost);
  }
  out.first_node.push_back(int32_t(tree.nodes));
  return out;
}

ChunkPlan::ChunkPlan(const TreeView& tree, int32_t first, int32_t last) : node(chunk_nodes(tree)), first_node(first) {
  const auto chunk_at_node = [&](int32_t v) { return int32_t(std::lower_bound(node.begin(), node.end(), v) - node.begin()); };
  first_chunk = chunk_at_node(first);
  last_chunk = chunk_at_node(last);
  for (int32_t c = first_chunk; c < last_chunk; ++c) of.insert(of.end(), size_t(node[c + 1] - node[c]), c);
}

}  // namespace longleaf
