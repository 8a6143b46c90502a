// SPDX-License-Identifier: Apache-2.0
// An open directory that belongs to the user alone, and file operations inside it that follow no
// link. Holding the descriptor keeps the checks true when the path is changed afterwards. Owns the
// descriptor; const members are thread-safe.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tpu::cache {

class Directory {
 public:
  // Creates it (mode 0700) with its parents if needed. kPermissionDenied if it belongs to someone
  // else or others may write to it.
  static Result<Directory> open(const std::string& path);
  Directory(Directory&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Directory& operator=(Directory&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Directory();

  // kNotFound if there is none; kPermissionDenied if it is not a plain file of the user's.
  Result<std::string> read(const std::string& name) const;
  // The file appears whole or not at all.
  Status write(const std::string& name, std::string_view head, std::string_view body) const;
  void remove(const std::string& name) const;
  // Sets the time of last use to now.
  void touch(const std::string& name) const;

  struct Entry {
    std::string name;
    uint64_t bytes;
    timespec last_use;
  };
  std::vector<Entry> list() const;

  // A lock among processes, held while the object lives; nothing if another holds it.
  class TryLock {
   public:
    explicit TryLock(const Directory& directory);
    ~TryLock();
    TryLock(const TryLock&) = delete;
    TryLock& operator=(const TryLock&) = delete;
    explicit operator bool() const { return fd_ >= 0; }

   private:
    int fd_;
  };

  static constexpr std::string_view kTemporaryPrefix = ".tmp-";

 private:
  explicit Directory(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace tpu::cache
