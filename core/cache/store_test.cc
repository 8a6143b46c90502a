// SPDX-License-Identifier: Apache-2.0
#include "core/cache/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

namespace tpu::cache {
namespace {

namespace fs = std::filesystem;

Hash128 key_of(int i) { return hash_bytes("key" + std::to_string(i)); }

// Content that tells which key it belongs to, of varying size.
std::string body_of(int i) {
  std::string body;
  for (int k = 0; k < 50 + i % 70; ++k) body += fmt::format("{}:{};", i, k);
  return body;
}

std::string contents(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void overwrite(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

class StoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/store_XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& e : fs::directory_iterator(directory_)) found.push_back(e.path());
    std::sort(found.begin(), found.end());
    return found;
  }
  fs::path only_file() const {
    EXPECT_EQ(files().size(), 1U);
    return files().at(0);
  }

  std::string directory_;
};

TEST_F(StoreTest, KeepsAcrossInstances) {
  Store(directory_).put(key_of(1), body_of(1));
  Store store(directory_);
  EXPECT_EQ(store.get(key_of(1)), body_of(1));
  EXPECT_EQ(store.get(key_of(2)), std::nullopt);
  EXPECT_EQ(store.stats().hits, 1U);
  EXPECT_EQ(store.stats().misses, 1U);
  EXPECT_EQ(store.stats().damaged, 0U);
  EXPECT_EQ(store.stats().bytes, fs::file_size(only_file()));
}

TEST_F(StoreTest, KeepsEmptyAndLargeEntriesAndReplaces) {
  Store store(directory_);
  const std::string large(5 << 20, 'x');
  store.put(key_of(1), "");
  store.put(key_of(2), large);
  EXPECT_EQ(store.get(key_of(1)), "");
  EXPECT_EQ(store.get(key_of(2)), large);
  store.put(key_of(2), "small");
  EXPECT_EQ(store.get(key_of(2)), "small");
  store.remove(key_of(2));
  EXPECT_EQ(store.get(key_of(2)), std::nullopt);
}

TEST_F(StoreTest, FilesAreTheUsersAlone) {
  const std::string nested = directory_ + "/a/b";
  Store store(nested);
  store.put(key_of(1), body_of(1));
  struct stat info{};
  ASSERT_EQ(stat(nested.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  ASSERT_EQ(stat(fs::directory_iterator(nested)->path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(StoreTest, EveryDamageIsAMissOrHarmless) {
  Store store(directory_);
  store.put(key_of(1), body_of(1));
  const fs::path file = only_file();
  const std::string intact = contents(file);
  std::mt19937 random(7);
  const auto below = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  for (int i = 0; i < 1000; ++i) {
    std::string bytes = intact;
    switch (below(5)) {
      case 0:
        bytes[below(bytes.size())] ^= static_cast<char>(1 << below(8));
        break;
      case 1:
        bytes.resize(below(bytes.size()));
        break;
      case 2:
        bytes += static_cast<char>(below(256));
        break;
      case 3:
        for (char& c : bytes) c = static_cast<char>(below(256));
        break;
      default:
        std::swap(bytes[below(bytes.size())], bytes[below(bytes.size())]);
        break;
    }
    overwrite(file, bytes);
    const auto got = store.get(key_of(1));
    EXPECT_EQ(got.has_value(), bytes == intact) << i;
    EXPECT_EQ(got.value_or(body_of(1)), body_of(1));
    EXPECT_EQ(fs::exists(file), bytes == intact) << "a damaged file is removed";
  }
  EXPECT_GT(store.stats().damaged, 900U);
  store.put(key_of(1), body_of(1));
  EXPECT_EQ(store.get(key_of(1)), body_of(1));
}

TEST_F(StoreTest, EntryUnderAnotherNameIsForeign) {
  Store store(directory_);
  store.put(key_of(1), body_of(1));
  const fs::path first = only_file();
  store.put(key_of(2), body_of(2));
  for (const fs::path& f : files()) {
    if (f != first) fs::copy_file(first, f, fs::copy_options::overwrite_existing);
  }
  EXPECT_EQ(store.get(key_of(2)), std::nullopt);
  EXPECT_EQ(store.get(key_of(1)), body_of(1));
}

TEST_F(StoreTest, FollowsNoLinkAndReadsNoFifo) {
  Store store(directory_);
  store.put(key_of(1), body_of(1));
  const fs::path file = only_file();
  const fs::path elsewhere = directory_ + "/elsewhere";
  fs::rename(file, elsewhere);
  fs::create_symlink(elsewhere, file);
  EXPECT_EQ(store.get(key_of(1)), std::nullopt);
  EXPECT_TRUE(fs::exists(elsewhere));
  EXPECT_FALSE(fs::exists(fs::symlink_status(file)));

  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(store.get(key_of(1)), std::nullopt);
}

TEST_F(StoreTest, RefusesFilesThatOthersMayWrite) {
  Store store(directory_);
  store.put(key_of(1), body_of(1));
  chmod(only_file().c_str(), 0666);
  EXPECT_EQ(store.get(key_of(1)), std::nullopt);
}

TEST_F(StoreTest, RefusesADirectoryThatOthersMayWriteWithOneWarning) {
  chmod(directory_.c_str(), 0777);
  testing::internal::CaptureStderr();
  Store store(directory_);
  store.put(key_of(1), body_of(1));
  EXPECT_EQ(store.get(key_of(1)), std::nullopt);
  EXPECT_FALSE(store.enabled());
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "torch_tpu: compiled programs are not kept on disk: " + directory_ +
                " must belong to you and be writable by nobody else (chmod 700)\n");
  EXPECT_TRUE(files().empty());
}

TEST_F(StoreTest, WorksWithoutADirectory) {
  testing::internal::CaptureStderr();
  Store none("");
  none.put(key_of(1), body_of(1));
  EXPECT_EQ(none.get(key_of(1)), std::nullopt);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");

  std::ofstream(directory_ + "/file") << "in the way";
  testing::internal::CaptureStderr();
  Store impossible(directory_ + "/file/cache");
  impossible.put(key_of(1), body_of(1));
  EXPECT_EQ(impossible.get(key_of(1)), std::nullopt);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("not kept on disk"), std::string::npos);
}

TEST_F(StoreTest, ComesBackAfterTheDirectoryWasRemoved) {
  Store store(directory_);
  fs::remove_all(directory_);
  store.put(key_of(1), body_of(1));
  EXPECT_EQ(store.get(key_of(1)), body_of(1));
}

// A limit on file size fails writes as a full disk does, in the middle of a file.
TEST_F(StoreTest, FullDiskLeavesNothingBehindAndWarnsOnce) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100, 100};
    setrlimit(RLIMIT_FSIZE, &limit);
    Store store(directory_);
    store.put(key_of(1), body_of(1));
    store.put(key_of(2), body_of(2));
    const bool good =
        !store.get(key_of(1)) && store.stats().failed_writes == 2 && fs::is_empty(directory_);
    _exit(good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(StoreTest, ForgetsWhatWasUsedLongestAgo) {
  const std::string body(1000, 'x');
  Store store(directory_, 20 * 1056);
  for (int i = 0; i < 20; ++i) {
    store.put(key_of(i), body);
    const timespec old[2] = {{1000 + i, 0}, {1000 + i, 0}};
    const std::string name = directory_ + "/" + key_of(i).hex() + ".entry";
    ASSERT_EQ(utimensat(AT_FDCWD, name.c_str(), old, 0), 0);
  }
  EXPECT_TRUE(store.get(key_of(0))) << "and is now the one used last";
  store.put(key_of(20), body);
  EXPECT_TRUE(store.get(key_of(0)));
  EXPECT_TRUE(store.get(key_of(20)));
  EXPECT_FALSE(store.get(key_of(1)));
  EXPECT_LE(store.stats().bytes, 16U * 1056U);
  EXPECT_EQ(files().size(), 16U);
  EXPECT_EQ(store.stats().evicted, 5U);
}

TEST_F(StoreTest, DoesNotKeepWhatIsLargerThanTheBound) {
  Store store(directory_, 1000);
  store.put(key_of(1), std::string(2000, 'x'));
  EXPECT_TRUE(files().empty());
}

TEST_F(StoreTest, ClearRemovesOnlyItsOwn) {
  Store store(directory_);
  for (int i = 0; i < 5; ++i) store.put(key_of(i), body_of(i));
  std::ofstream(directory_ + "/notes.txt") << "mine";
  store.clear();
  EXPECT_EQ(only_file().filename(), "notes.txt");
  EXPECT_EQ(store.stats().bytes, 0U);
  EXPECT_FALSE(store.get(key_of(1)));
}

// Whatever is there after writers were killed in the middle is whole.
TEST_F(StoreTest, KilledWritersLeaveWholeEntries) {
  for (int round = 0; round < 12; ++round) {
    const pid_t writer = fork();
    if (writer == 0) {
      Store store(directory_);
      for (int i = 0;; ++i) store.put(key_of(i % 40), body_of(i % 40));
    }
    while (files().empty()) usleep(1000);  // a busy machine may be slow to start the writer
    usleep(3000 + 1000 * round);
    kill(writer, SIGKILL);
    waitpid(writer, nullptr, 0);
    Store store(directory_);
    int found = 0;
    for (int i = 0; i < 40; ++i) {
      const auto got = store.get(key_of(i));
      EXPECT_EQ(got.value_or(body_of(i)), body_of(i));
      found += got.has_value();
    }
    EXPECT_GT(found, 0);
    EXPECT_EQ(store.stats().damaged, 0U);
  }
}

TEST_F(StoreTest, ProcessesAndThreadsShareADirectory) {
  std::vector<pid_t> writers;
  for (int p = 0; p < 2; ++p) {
    writers.push_back(fork());
    if (writers.back() == 0) {
      Store store(directory_, 30000);
      for (int i = 0; i < 2000; ++i) store.put(key_of(i % 100), body_of(i % 100));
      _exit(0);
    }
  }
  Store store(directory_, 30000);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        const int k = (i * 7 + t) % 100;
        const auto got = store.get(key_of(k));
        wrong += got && *got != body_of(k);
        store.put(key_of(k), body_of(k));
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const pid_t writer : writers) {
    int status = 0;
    waitpid(writer, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(store.stats().damaged, 0U);
}

}  // namespace
}  // namespace tpu::cache
