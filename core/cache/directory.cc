// SPDX-License-Identifier: Apache-2.0
#include "core/cache/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

namespace tpu::cache {
namespace {

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return fd_; }
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

Status system_error(std::string_view doing, const std::string& name) {
  const int error = errno;
  const Code code = error == ENOENT                      ? Code::kNotFound
                    : error == EACCES || error == ELOOP  ? Code::kPermissionDenied
                    : error == ENOSPC || error == EDQUOT ? Code::kResourceExhausted
                                                         : Code::kUnavailable;
  return {code, fmt::format("{} {}: {}", doing, name, std::strerror(error))};
}

bool closed_to_others(const struct stat& info) {
  return info.st_uid == geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool read_all(int fd, std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::read(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (n == 0) break;  // shrunk meanwhile: the reader's checks find it too short
    done += static_cast<size_t>(n);
  }
  bytes.resize(done);
  return true;
}

std::string temporary_name() {
  static std::atomic<uint64_t> serial{0};
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return fmt::format("{}{}-{}-{}", Directory::kTemporaryPrefix, getpid(), now.tv_nsec,
                     serial.fetch_add(1));
}

}  // namespace

Result<Directory> Directory::open(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code ignored;  // open() below reports what is missing
  if (!parent.empty()) std::filesystem::create_directories(parent, ignored);
  ::mkdir(path.c_str(), S_IRWXU);
  Directory directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (directory.fd_ < 0) return system_error("cannot open", path);
  struct stat info{};
  if (fstat(directory.fd_, &info) != 0) return system_error("cannot examine", path);
  if (!closed_to_others(info)) {
    return Status(
        Code::kPermissionDenied,
        fmt::format("{} must belong to you and be writable by nobody else (chmod 700)", path));
  }
  return directory;
}

Directory::~Directory() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::string> Directory::read(const std::string& name) const {
  // O_NONBLOCK: opening a fifo in place of the file must not hang.
  const File file(openat(fd_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) return system_error("cannot open", name);
  struct stat info{};
  if (fstat(file.get(), &info) != 0) return system_error("cannot examine", name);
  if (!S_ISREG(info.st_mode) || !closed_to_others(info)) {
    return Status(Code::kPermissionDenied, fmt::format("{} is not a file of yours", name));
  }
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  if (!read_all(file.get(), bytes)) return system_error("cannot read", name);
  return bytes;
}

Status Directory::write(const std::string& name, std::string_view head,
                        std::string_view body) const {
  const std::string temporary = temporary_name();
  File file(openat(fd_, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                   S_IRUSR | S_IWUSR));
  if (file.get() < 0) return system_error("cannot create", temporary);
  // No fsync: after a crash of the machine the checksum tells whole entries from the others.
  const bool written = write_all(file.get(), head) && write_all(file.get(), body) && file.close();
  if (written && renameat(fd_, temporary.c_str(), fd_, name.c_str()) == 0) return {};
  const Status failure = system_error("cannot write", name);
  unlinkat(fd_, temporary.c_str(), 0);
  return failure;
}

void Directory::remove(const std::string& name) const { unlinkat(fd_, name.c_str(), 0); }

void Directory::touch(const std::string& name) const {
  utimensat(fd_, name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

std::vector<Directory::Entry> Directory::list() const {
  // A second descriptor, because reading moves the position.
  const int fd = openat(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fd < 0 ? nullptr : fdopendir(fd), closedir);
  std::vector<Entry> entries;
  if (stream == nullptr) return entries;
  while (const dirent* item = readdir(stream.get())) {
    struct stat info{};
    if (fstatat(fd_, item->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(info.st_mode)) continue;
    entries.push_back({item->d_name, static_cast<uint64_t>(info.st_size), info.st_mtim});
  }
  return entries;
}

Directory::TryLock::TryLock(const Directory& directory)
    : fd_(openat(directory.fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (fd_ >= 0 && flock(fd_, LOCK_EX | LOCK_NB) != 0) ::close(std::exchange(fd_, -1));
}

Directory::TryLock::~TryLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace tpu::cache
