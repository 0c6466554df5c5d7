#include "files/scratch.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>
#include <unordered_map>

namespace longleaf {

namespace {

std::mutex mutex;
std::string scratch_folder;
std::atomic<size_t> smallest{0};  // 0: nothing goes to files
std::unordered_map<void*, size_t> mapped;
std::atomic<size_t> mappings{0};

// A file without a name, of this size on the disk: what is written later cannot fail for want of room.
int open_unnamed(const std::string& folder, size_t bytes) {
  std::string name = folder + "/longleaf-XXXXXX";
  const int file = mkstemp(name.data());
  if (file < 0) throw std::runtime_error(folder + " cannot hold working files: " + std::strerror(errno) + ".");
  unlink(name.c_str());
  if (const int error = posix_fallocate(file, 0, off_t(bytes)); error != 0) {
    close(file);
    throw std::runtime_error(folder + " has no room for a working file of " + std::to_string(bytes) +
                             " bytes: " + std::strerror(error) + ".");
  }
  return file;
}

}  // namespace

void set_scratch(const std::string& folder, size_t bytes) {
  std::lock_guard lock(mutex);
  scratch_folder = folder;
  smallest = folder.empty() ? 0 : (bytes == 0 ? 1 : bytes);
}

void* scratch_allocate(size_t bytes) {
  const size_t least = smallest;
  if (least == 0 || bytes < least) return nullptr;
  std::lock_guard lock(mutex);
  const int file = open_unnamed(scratch_folder, bytes);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mapped[memory] = bytes;
  ++mappings;
  return memory;
}

bool scratch_free(void* memory) {
  if (mappings == 0) return false;
  std::lock_guard lock(mutex);
  const auto found = mapped.find(memory);
  if (found == mapped.end()) return false;
  munmap(memory, found->second);
  mapped.erase(found);
  --mappings;
  return true;
}

}  // namespace longleaf
