// Where the largest arrays of training are: in memory, or in unnamed files that the system may write out and read back.
//
// Coordinate descent copies a node's rows, and the root's are all there are. On files these copies do not count against
// a limit on memory; as long as there is memory for them, they are as fast there.
#pragma once

#include <cstddef>
#include <string>

namespace longleaf {

// Arrays of at least `bytes` go to files of `folder` from now on; an empty folder: none do. Those that are there stay.
void set_scratch(const std::string& folder, size_t bytes);

void* scratch_allocate(size_t bytes);  // null if such an array belongs in memory
bool scratch_free(void* memory);       // false if it is not from here

}  // namespace longleaf
