// The memory of a plan that was laid out, and the addresses of everything in it.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/graph/passes/training_graph.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "worker/plan/plan_state.h"

namespace lockstep::worker {

absl::Status Plan::Bind(const std::map<std::string, std::byte*>& variables, const Allocator& for_gradients) {
  LS_CHECK(state_->arena == nullptr, "a plan that is bound is not bound again");
  const absl::Status bound = state_->Bind(variables, for_gradients);
  if (!bound.ok()) Release();
  return bound;
}

absl::Status Plan::State::Bind(const std::map<std::string, std::byte*>& addresses, const Allocator& for_gradients) {
  LS_RETURN_IF_ERROR(BindVariables(addresses));
  LS_RETURN_IF_ERROR(Allocate(for_gradients));
  if (poison) {
    for (const device::Buffer* const buffer : {arena.get(), persistent.get(), gradients.get()}) {
      if (buffer != nullptr) LS_RETURN_IF_ERROR(PoisonMemory(*buffer));
    }
  }
  for (const auto& [value, tensor] : constants) {
    LS_RETURN_IF_ERROR(stream->CopyToDevice(Address(value), tensor->data(), static_cast<size_t>(tensor->byte_size())));
  }
  LS_RETURN_IF_ERROR(stream->Synchronize());
  for (PlanStep& step : refresh) LS_RETURN_IF_ERROR(BindStep(step));
  for (PlanStep& step : steps) LS_RETURN_IF_ERROR(BindStep(step));
  LS_RETURN_IF_ERROR(BindInputs());
  return MakeAccumulation();
}

void Plan::Release() {
  State& state = *state_;
  // A failure of what was queued stays in the stream, and shows there.
  (void)state.stream->Synchronize();
  // Recordings hold addresses, and the first pass in new memory is not recorded.
  state.segments.clear();
  state.ran_once = false;
  state.add.clear();
  state.input_copies.clear();
  state.inputs_taken.reset();
  state.random = nullptr;
  state.random_staging.reset();
  state.arena.reset();
  state.persistent.reset();
  state.gradients.reset();
}

absl::Status Plan::State::BindVariables(const std::map<std::string, std::byte*>& addresses) {
  for (const auto& [name, value] : variables) {
    const auto address = addresses.find(name);
    if (address == addresses.end() || address->second == nullptr) {
      return absl::InternalError(absl::StrCat("variable '", name, "' is bound to no memory"));
    }
    storages[static_cast<size_t>(values[static_cast<size_t>(value)].storage)].address = address->second;
  }
  return absl::OkStatus();
}

absl::Status Plan::State::Allocate(const Allocator& for_gradients) {
  const auto allocate = [this](int64_t bytes) { return device->Allocate(static_cast<size_t>(bytes)); };
  LS_ASSIGN_OR_RETURN(arena, allocate(memory.arena));
  LS_ASSIGN_OR_RETURN(persistent, allocate(memory.persistent));
  if (memory.gradients > 0) {
    const auto bytes = static_cast<size_t>(memory.gradients);
    LS_ASSIGN_OR_RETURN(gradients, for_gradients != nullptr ? for_gradients(bytes) : device->Allocate(bytes));
  }
  const auto place = [this](PlanStorage& storage) {
    switch (storage.home) {
      case PlanStorage::Home::kArena:
        storage.address = arena->address() + storage.offset;
        break;
      case PlanStorage::Home::kPersistent:
        storage.address = persistent->address() + storage.offset;
        break;
      case PlanStorage::Home::kApart:
        storage.address = gradients->address() + storage.offset;
        break;
      case PlanStorage::Home::kGradient:
        storage.address = storages[static_cast<size_t>(storage.bucket)].address + storage.offset;
        break;
      case PlanStorage::Home::kVariable:
        break;
    }
  };
  for (const int bucket : bucket_storages) place(storages[static_cast<size_t>(bucket)]);
  for (PlanStorage& storage : storages) place(storage);
  return absl::OkStatus();
}

absl::Status Plan::State::PoisonMemory(const device::Buffer& buffer) {
  // Copied from: it stays as long as anything is queued.
  static const std::vector<std::byte>& poisoned = *[] {
    auto* bytes = new std::vector<std::byte>(size_t{1} << 16);
    Poison(absl::MakeSpan(*bytes));
    return bytes;
  }();
  for (size_t at = 0; at < buffer.size(); at += poisoned.size()) {
    const size_t bytes = std::min(poisoned.size(), buffer.size() - at);
    LS_RETURN_IF_ERROR(stream->CopyToDevice(buffer.address() + at, poisoned.data(), bytes));
  }
  return absl::OkStatus();
}

absl::Status Plan::State::BindStep(PlanStep& step) {
  if (step.kernel == nullptr) return absl::OkStatus();
  device::KernelArguments arguments;
  if (step.workspace >= 0) arguments.workspace = storages[static_cast<size_t>(step.workspace)].address;
  for (const int value : step.inputs) arguments.inputs.push_back(Address(value));
  for (const int value : step.outputs) arguments.outputs.push_back(Address(value));
  if (absl::Status status = step.kernel->Bind(arguments); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat("node '", step.node, "': ", status.message()));
  }
  return absl::OkStatus();
}

absl::Status Plan::State::BindInputs() {
  for (const int value : input_values) {
    input_copies.push_back({Address(value), static_cast<size_t>(Bytes(value))});
  }
  LS_ASSIGN_OR_RETURN(inputs_taken, device->NewEvent());
  if (random_value < 0) return absl::OkStatus();
  random = Address(random_value);
  LS_ASSIGN_OR_RETURN(random_staging, device->AllocateHost(kRandomBytes));
  return absl::OkStatus();
}

absl::Status Plan::State::MakeAccumulation() {
  if (!accumulate_passes) return absl::OkStatus();
  for (size_t b = 0; b < gradient_layout->buckets().size(); ++b) {
    const Node node{.name = "sum of passes",
                    .op = OpType::kAdd,
                    .inputs = {"lockstep.grad", "lockstep.gradsum"},
                    .outputs = {"lockstep.grad"}};
    const device::Operand flat{.shape = {gradient_layout->buckets()[b].range.size}};
    LS_ASSIGN_OR_RETURN(std::unique_ptr<device::Kernel> kernel,
                        device->MakeKernel({.node = &node, .inputs = {flat, flat}, .outputs = {flat}}));
    if (!kernel->CanShare(0, 0) || kernel->workspace_bytes() > 0) {
      return absl::InternalError("the device cannot add in place without scratch, which the sum over passes needs");
    }
    std::byte* total = BucketOfSum(static_cast<int>(b));
    std::byte* const pass = BucketOfPass(static_cast<int>(b));
    LS_RETURN_IF_ERROR(kernel->Bind({.inputs = {total, pass}, .outputs = {total}, .workspace = nullptr}));
    add.push_back(std::move(kernel));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
