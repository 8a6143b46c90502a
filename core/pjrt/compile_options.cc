// SPDX-License-Identifier: Apache-2.0
#include "core/pjrt/compile_options.h"

#include <cstring>
#include <string_view>

namespace tpu::pjrt {
namespace {

// Field numbers of xla/pjrt/proto/compile_options.proto.
constexpr int kExecutableBuildOptions = 3;
constexpr int kCompilePortableExecutable = 4;
constexpr int kEnvOptionOverrides = 7;
constexpr int kNumReplicas = 4;
constexpr int kNumPartitions = 5;
constexpr int kUseShardyPartitioner = 19;
constexpr int kMapKey = 1;
constexpr int kMapValue = 2;
constexpr int kStringField = 1;
constexpr int kBoolField = 2;
constexpr int kIntField = 3;
constexpr int kDoubleField = 4;

enum WireType { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2 };

class Writer {
 public:
  void integer(int field, uint64_t value) {
    tag(field, kVarint);
    varint(value);
  }
  void number(int field, double value) {
    tag(field, kFixed64);
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));  // little endian, like every target of this project
    out_.append(bytes, sizeof(bytes));
  }
  void bytes(int field, std::string_view value) {
    tag(field, kLengthDelimited);
    varint(value.size());
    out_ += value;
  }
  std::string take() { return std::move(out_); }

 private:
  void tag(int field, WireType type) { varint(static_cast<uint64_t>(field) << 3 | type); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  std::string out_;
};

struct ValueWriter {
  Writer& writer;
  void operator()(bool v) const { writer.integer(kBoolField, v); }
  void operator()(int64_t v) const { writer.integer(kIntField, static_cast<uint64_t>(v)); }
  void operator()(double v) const { writer.number(kDoubleField, v); }
  void operator()(const std::string& v) const { writer.bytes(kStringField, v); }
};

std::string override_entry(const OptionOverride& option) {
  Writer value;
  std::visit(ValueWriter{value}, option.value);
  Writer entry;
  entry.bytes(kMapKey, option.name);
  entry.bytes(kMapValue, value.take());
  return entry.take();
}

}  // namespace

std::string CompileOptions::serialize() const {
  Writer build;
  build.integer(kNumReplicas, 1);
  build.integer(kNumPartitions, 1);
  if (shardy) build.integer(kUseShardyPartitioner, 1);
  Writer options;
  options.bytes(kExecutableBuildOptions, build.take());
  if (portable) options.integer(kCompilePortableExecutable, 1);
  for (const OptionOverride& o : overrides) options.bytes(kEnvOptionOverrides, override_entry(o));
  return options.take();
}

}  // namespace tpu::pjrt
