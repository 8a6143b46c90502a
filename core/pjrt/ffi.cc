// SPDX-License-Identifier: Apache-2.0
#include "core/pjrt/ffi.h"

#include <xla/ffi/api/c_api.h>

#include <array>
#include <cstring>
#include <exception>

namespace tpu::pjrt {
namespace {

// The FFI extension of a plugin's table. PJRT's own header of it is in no package.
struct RegisterArgs {
  size_t struct_size;
  const char* name;
  size_t name_size;
  void* handler;
  const char* platform;
  size_t platform_size;
  uint32_t traits;
};
struct FfiExtension {
  PJRT_Extension_Base base;
  void* register_type;
  void* add_user_data;
  PJRT_Error* (*register_handler)(RegisterArgs*);
};

struct TypePair {
  XLA_FFI_DataType ffi;
  ir::DType dtype;
};
constexpr TypePair kTypes[] = {
    {XLA_FFI_DataType_PRED, ir::DType::kPred},
    {XLA_FFI_DataType_S8, ir::DType::kS8},
    {XLA_FFI_DataType_S16, ir::DType::kS16},
    {XLA_FFI_DataType_S32, ir::DType::kS32},
    {XLA_FFI_DataType_S64, ir::DType::kS64},
    {XLA_FFI_DataType_U8, ir::DType::kU8},
    {XLA_FFI_DataType_U16, ir::DType::kU16},
    {XLA_FFI_DataType_U32, ir::DType::kU32},
    {XLA_FFI_DataType_U64, ir::DType::kU64},
    {XLA_FFI_DataType_F8E4M3FN, ir::DType::kF8E4M3FN},
    {XLA_FFI_DataType_F8E5M2, ir::DType::kF8E5M2},
    {XLA_FFI_DataType_F8E4M3FNUZ, ir::DType::kF8E4M3FNUZ},
    {XLA_FFI_DataType_F8E5M2FNUZ, ir::DType::kF8E5M2FNUZ},
    {XLA_FFI_DataType_F8E8M0FNU, ir::DType::kF8E8M0FNU},
    {XLA_FFI_DataType_F16, ir::DType::kF16},
    {XLA_FFI_DataType_BF16, ir::DType::kBF16},
    {XLA_FFI_DataType_F32, ir::DType::kF32},
    {XLA_FFI_DataType_F64, ir::DType::kF64},
    {XLA_FFI_DataType_C64, ir::DType::kC64},
    {XLA_FFI_DataType_C128, ir::DType::kC128},
};

Result<HostBuffer> host_buffer(const void* raw) {
  const auto& b = *static_cast<const XLA_FFI_Buffer*>(raw);
  for (const TypePair& pair : kTypes) {
    if (pair.ffi != b.dtype) continue;
    return HostBuffer{pair.dtype, {b.dims, static_cast<size_t>(b.rank)}, b.data};
  }
  return Status(Code::kInvalidArgument,
                fmt::format("a host function got element type {}", static_cast<int>(b.dtype)));
}

XLA_FFI_Error* to_ffi(const XLA_FFI_CallFrame& frame, const Status& status) {
  if (status.ok()) return nullptr;
  XLA_FFI_Error_Create_Args args{};
  args.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE;
  args.message = status.message().c_str();
  args.errc = static_cast<XLA_FFI_Error_Code>(status.code());
  return frame.api->XLA_FFI_Error_Create(&args);
}

// Asked for while registering. A handler that names another minor version than the plugin's is
// dropped in silence; what we use of the frame is the same in all of them, so we name its own.
bool answer_metadata(const XLA_FFI_CallFrame& frame) {
  for (auto* e = frame.extension_start; e != nullptr; e = e->next) {
    if (e->type != XLA_FFI_Extension_Metadata) continue;
    XLA_FFI_Metadata& metadata = *reinterpret_cast<XLA_FFI_Metadata_Extension*>(e)->metadata;
    metadata.api_version.major_version = frame.api->api_version.major_version;
    metadata.api_version.minor_version = frame.api->api_version.minor_version;
    metadata.traits = 0;
    return true;
  }
  return false;
}

constexpr int32_t kProbeAnswer = 20260;

Status answer_probe(const HostCallFrame& frame) {
  const auto result = frame.result(0);
  if (result.ok()) std::memcpy(result->data, &kProbeAnswer, sizeof(kProbeAnswer));
  return result.status();
}

}  // namespace

size_t HostCallFrame::operand_count() const { return static_cast<size_t>(frame_.args.size); }
size_t HostCallFrame::result_count() const { return static_cast<size_t>(frame_.rets.size); }

Result<HostBuffer> HostCallFrame::operand(size_t i) const {
  return host_buffer(frame_.args.args[i]);
}
Result<HostBuffer> HostCallFrame::result(size_t i) const {
  return host_buffer(frame_.rets.rets[i]);
}

std::optional<std::string_view> HostCallFrame::text(std::string_view name) const {
  const XLA_FFI_Attrs& attributes = frame_.attrs;
  for (int64_t i = 0; i < attributes.size; ++i) {
    const XLA_FFI_ByteSpan& key = *attributes.names[i];
    if (attributes.types[i] != XLA_FFI_AttrType_STRING ||
        name != std::string_view(key.ptr, key.len))
      continue;
    const auto& value = *static_cast<const XLA_FFI_ByteSpan*>(attributes.attrs[i]);
    return std::string_view(value.ptr, value.len);
  }
  return std::nullopt;
}

namespace internal {

XLA_FFI_Error* run_host_function(XLA_FFI_CallFrame& frame, HostFunction function) {
  if (answer_metadata(frame) || frame.stage != XLA_FFI_ExecutionStage_EXECUTE) return nullptr;
  return to_ffi(frame, function(HostCallFrame(frame)));
}

Status register_ffi_handler(const Plugin& plugin, std::string_view name, FfiHandler handler) {
  constexpr std::string_view kPlatform = "Host";
  const auto* extension = plugin.api().extension(PJRT_Extension_Type_FFI);
  if (extension == nullptr) {
    return {Code::kUnimplemented, fmt::format("{} calls no host functions", plugin.path())};
  }
  RegisterArgs args{.struct_size = sizeof(RegisterArgs),
                    .name = name.data(),
                    .name_size = name.size(),
                    .handler = reinterpret_cast<void*>(handler),
                    .platform = kPlatform.data(),
                    .platform_size = kPlatform.size(),
                    .traits = 0};
  return plugin.api().take(
      reinterpret_cast<const FfiExtension*>(extension)->register_handler(&args));
}

}  // namespace internal

Status probe_host_functions(const Client& client) {
  TPU_RETURN_IF_ERROR(register_host_function<answer_probe>(client.plugin(), "torch_tpu.probe"));
  const std::string module = R"(module { func.func public @main() -> tensor<i32> {
    %0 = stablehlo.custom_call @torch_tpu.probe() {api_version = 4 : i32} : () -> tensor<i32>
    return %0 : tensor<i32> } })";
  auto program = client.compile(module, {});
  if (!program.ok()) return program.status();
  std::array<PJRT_Buffer*, 1> results{};
  PJRT_Device* device = client.devices()[0];
  TPU_RETURN_IF_ERROR(program->execute(
      {.arguments = {}, .non_donatable = {}, .device = device, .results = results}));
  const Buffer result(&client.api(), results[0]);
  int32_t answer = 0;
  const auto copied = result.to_host(&answer, sizeof(answer));
  if (!copied.ok()) return copied.status();
  TPU_RETURN_IF_ERROR(copied->await());
  if (answer == kProbeAnswer) return {};
  return {Code::kInternal, "a host function's result did not arrive"};
}

}  // namespace tpu::pjrt
