// Sides of rows and orders of labels that fit each other.
#pragma once

#include <span>
#include <vector>

#include "baselines/baselines.h"

namespace longleaf {

// Kept from node to node, so that what it does for a node goes by the labels of the node's own rows.
class SideFinder {
 public:
  SideFinder(const CsrView& labels, const double* gain, const Work& work);

  // sides: per element of `rows`, 0 or 1; those to begin with become those found.
  void find(std::span<const int32_t> rows, std::vector<uint8_t>& sides);

 private:
  struct Entry {
    int32_t label;
    double gain;
  };
  struct Place {
    double gain;
    int32_t label;
    bool operator<(const Place& other) const { return gain != other.gain ? gain > other.gain : label < other.label; }
  };

  void take_rows(std::span<const int32_t> rows);
  void rank(const std::vector<double>& gain, std::vector<double>& discount);

  const CsrView labels_;
  const double* const label_gain_;
  const Work& work_;
  std::vector<int32_t> number_;  // by label, -1 between nodes
  std::vector<int32_t> seen_;    // the node's labels in order
  std::vector<int64_t> begin_;   // of each row's entries, and where the last ends
  std::vector<Entry> entries_;
  std::vector<Place> places_;
  std::vector<double> discount_of_place_;
  std::vector<double> gain_[2], discount_[2];  // by side, then the node's label
};

}  // namespace longleaf
