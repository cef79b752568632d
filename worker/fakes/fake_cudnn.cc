#include "worker/fakes/fake_cudnn.h"

#include <dlfcn.h>

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/status/check.h"
#include "worker/device/cuda/checker/kernel_checks.h"
#include "worker/device/cuda/runtime/runtime_on_host.h"
#include "worker/fakes/fake_cudnn_program.h"

namespace lockstep::device::cuda {
namespace {

cudaStream_t& CurrentStream() {
  static cudaStream_t stream = nullptr;
  return stream;
}

// The variant packs that are being made, by descriptor.
std::map<cudnnBackendDescriptor_t, FakeCudnnPack>& Packs() {
  static auto* packs = new std::map<cudnnBackendDescriptor_t, FakeCudnnPack>;
  return *packs;
}

std::string JsonOf(cudnnBackendDescriptor_t plan) {
  constexpr auto kJson = CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION;
  int64_t count = 0;
  LS_CHECK(cudnnBackendGetAttribute(plan, kJson, CUDNN_TYPE_CHAR, 0, &count, nullptr) == CUDNN_STATUS_SUCCESS,
           "a plan describes itself");
  std::string json(static_cast<size_t>(count), '\0');
  LS_CHECK(cudnnBackendGetAttribute(plan, kJson, CUDNN_TYPE_CHAR, count, &count, json.data()) == CUDNN_STATUS_SUCCESS,
           "a plan describes itself");
  return json.substr(0, json.find('\0'));
}

template <typename T>
std::vector<T> Values(int64_t count, const void* values) {
  return std::vector<T>(static_cast<const T*>(values), static_cast<const T*>(values) + count);
}

}  // namespace

FakeCudnn& FakeCudnn::Get() {
  static auto* fake = new FakeCudnn;
  return *fake;
}

}  // namespace lockstep::device::cuda

using lockstep::device::cuda::FakeCudnn;
using lockstep::device::cuda::Packs;
using lockstep::device::cuda::Values;

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  static char something = 0;
  *handle = reinterpret_cast<cudnnHandle_t>(&something);
  return FakeCudnn::Get().create;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t) { return CUDNN_STATUS_SUCCESS; }

cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t stream) {
  lockstep::device::cuda::CurrentStream() = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t, cudaStream_t* stream) {
  *stream = lockstep::device::cuda::CurrentStream();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  // A variant pack cannot be read back: what goes into one is noted on the way.
  if (name == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) Packs()[descriptor].uids = Values<int64_t>(count, values);
  if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS) Packs()[descriptor].pointers = Values<void*>(count, values);
  if (name == CUDNN_ATTR_VARIANT_PACK_WORKSPACE) Packs()[descriptor].workspace = Values<void*>(1, values)[0];
  static const auto original =
      reinterpret_cast<decltype(&cudnnBackendSetAttribute)>(dlsym(RTLD_NEXT, "cudnnBackendSetAttribute"));
  return original(descriptor, name, type, count, values);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  if (FakeCudnn::Get().refuses) return CUDNN_STATUS_NOT_SUPPORTED;
  static const auto original =
      reinterpret_cast<decltype(&cudnnBackendFinalize)>(dlsym(RTLD_NEXT, "cudnnBackendFinalize"));
  const cudnnStatus_t status = original(descriptor);
  // Only a plan knows its scratch.
  int64_t count = 0, bytes = 0;
  if (status == CUDNN_STATUS_SUCCESS &&
      cudnnBackendGetAttribute(descriptor, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                               &bytes) == CUDNN_STATUS_SUCCESS) {
    ++FakeCudnn::Get().plans;
  }
  return status;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  const auto found = Packs().find(pack);
  LS_CHECK(found != Packs().end(), "a variant pack was filled");
  const auto json = nlohmann::json::parse(lockstep::device::cuda::JsonOf(plan));
  const auto program = std::make_shared<lockstep::device::cuda::FakeCudnnProgram>(json, found->second);
  const void* const workspace = found->second.workspace;
  Packs().erase(found);
  int64_t workspace_bytes = 0, count = 0;
  LS_CHECK(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                                    &workspace_bytes) == CUDNN_STATUS_SUCCESS,
           "a plan knows its scratch");
  if (workspace_bytes > 0 && workspace == nullptr) return CUDNN_STATUS_BAD_PARAM;
  FakeCudnn& fake = FakeCudnn::Get();
  ++fake.executions;
  const auto said = fake.milliseconds.find(json.at("engine").at("engineId").get<int64_t>());
  const double milliseconds = said == fake.milliseconds.end() ? 1 : said->second;
  const bool queued =
      lockstep::device::cuda::Enqueue(
          lockstep::device::cuda::CurrentStream(),
          [program] { lockstep::device::cuda::checker::RunLibrary("a plan of cuDNN", [&] { program->Run(); }); },
          milliseconds)
          .ok();
  return queued ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}
