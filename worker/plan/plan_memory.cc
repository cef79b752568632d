// The second half of PlanBuilder: where values lie.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/plan/arena.h"
#include "worker/plan/plan_builder.h"

namespace lockstep::worker {
namespace {

constexpr auto kAlignment = static_cast<int64_t>(device::Buffer::kAlignment);

int64_t ArenaBytes(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

void PlanBuilder::FindLifetimes() {
  std::vector<bool> seen(state_->storages.size(), false);
  const auto touch = [&](int value, int step) {
    if (value < 0) return;
    const auto storage = static_cast<size_t>(state_->values[static_cast<size_t>(value)].storage);
    if (!seen[storage]) state_->storages[storage].first = step;
    seen[storage] = true;
    state_->storages[storage].last = step;
  };
  // Inputs are copied in before the first step.
  for (const GraphInput& input : graph_.inputs) touch(by_name_.at(input.name), 0);
  for (size_t i = 0; i < state_->steps.size(); ++i) {
    for (const int value : state_->steps[i].inputs) touch(value, static_cast<int>(i));
    for (const int value : state_->steps[i].outputs) touch(value, static_cast<int>(i));
  }
}

void PlanBuilder::ShareInPlace() {
  for (size_t i = 0; i < state_->steps.size(); ++i) {
    if (state_->steps[i].kernel != nullptr) ShareStep(state_->steps[i], static_cast<int>(i));
  }
}

void PlanBuilder::ShareStep(const PlanStep& step, int index) {
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    if (step.outputs[o] < 0) continue;
    const int own = state_->values[static_cast<size_t>(step.outputs[o])].storage;
    const PlanStorage result = state_->storages[static_cast<size_t>(own)];
    if (result.home != Home::kArena || result.first != index) continue;
    for (const int input : step.inputs) {
      if (input < 0) continue;
      const int taken = state_->values[static_cast<size_t>(input)].storage;
      PlanStorage& source = state_->storages[static_cast<size_t>(taken)];
      if (source.home != Home::kArena || source.last != index || source.bytes != result.bytes) continue;
      bool legal = true;
      for (size_t other = 0; other < step.inputs.size(); ++other) {
        if (step.inputs[other] < 0) continue;
        if (state_->values[static_cast<size_t>(step.inputs[other])].storage != taken) continue;
        legal = legal && step.kernel->CanShare(static_cast<int>(other), static_cast<int>(o));
      }
      if (!legal) continue;
      source.last = result.last;
      for (PlanValue& value : state_->values) {
        if (value.storage == own) value.storage = taken;
      }
      // Nothing uses it any more: it takes no room.
      state_->storages[static_cast<size_t>(own)] = {.home = Home::kArena, .bytes = 0, .first = index, .last = index};
      break;
    }
  }
}

void PlanBuilder::AddWorkspaces() {
  const auto add = [this](PlanStep& step, int first, int last) {
    const auto bytes = step.kernel == nullptr ? int64_t{0} : static_cast<int64_t>(step.kernel->workspace_bytes());
    if (bytes == 0) return;
    step.workspace = static_cast<int>(state_->storages.size());
    state_->storages.push_back({.home = Home::kArena, .bytes = bytes, .first = first, .last = last});
  };
  for (size_t i = 0; i < state_->steps.size(); ++i) add(state_->steps[i], static_cast<int>(i), static_cast<int>(i));
  for (size_t i = 0; i < state_->refresh.size(); ++i) {
    add(state_->refresh[i], -1 - static_cast<int>(i), -1 - static_cast<int>(i));
  }
}

absl::Status PlanBuilder::PlaceGradients() {
  // In the order in which the steps finish them.
  std::vector<int> values;
  for (const PlanStep& step : state_->steps) {
    for (const int value : step.outputs) {
      if (value < 0 || StorageOf(value).home != Home::kGradient) continue;
      values.push_back(value);
    }
  }
  std::vector<int64_t> sizes;
  for (const int value : values) {
    const PlanValue& v = state_->values[static_cast<size_t>(value)];
    if (v.dtype != DType::kF32 && v.dtype != DType::kF64) {
      return absl::InvalidArgumentError(absl::StrCat("gradient '", v.name, "' has element type ", DTypeName(v.dtype),
                                                     "; trained parameters have to be F32"));
    }
    if (NumElements(v.shape) == 0) {
      return absl::InvalidArgumentError(absl::StrCat("parameter '", gradient_of_.at(v.name), "' of shape ",
                                                     ShapeString(v.shape),
                                                     " has no elements; remove it from what is trained"));
    }
    // The layout counts in floats.
    sizes.push_back(NumElements(v.shape) * DTypeSize(v.dtype) / DTypeSize(DType::kF32));
    state_->gradient_parameters.push_back(gradient_of_.at(v.name));
  }
  state_->gradient_layout.emplace(sizes, options_.bucket_bytes);
  for (const Bucket& bucket : state_->gradient_layout->buckets()) AddBucket(bucket, values);
  if (options_.accumulate_passes || writes_apart()) {
    state_->memory.gradients = state_->gradient_layout->total_elements() * int64_t{sizeof(float)};
  }
  return absl::OkStatus();
}

void PlanBuilder::AddBucket(const Bucket& bucket, const std::vector<int>& values) {
  const int last_step = static_cast<int>(state_->steps.size()) - 1;
  const int own = static_cast<int>(state_->storages.size());
  PlanStorage all{.home = Home::kArena, .bytes = bucket.range.size * int64_t{sizeof(float)}, .first = last_step};
  int complete = 0;
  for (int t = bucket.first_tensor; t < bucket.last_tensor; ++t) {
    PlanStorage& tensor = StorageOf(values[static_cast<size_t>(t)]);
    const int64_t offset = state_->gradient_layout->tensors()[static_cast<size_t>(t)].offset - bucket.range.offset;
    tensor.offset = offset * int64_t{sizeof(float)};
    tensor.bucket = own;
    all.first = std::min(all.first, tensor.first);
    all.last = std::max(all.last, tensor.last);
    complete = std::max(complete, tensor.first);
  }
  const int number = static_cast<int>(state_->bucket_storages.size());
  for (size_t i = static_cast<size_t>(complete); i < state_->steps.size(); ++i) {
    state_->steps[i].buckets_ready = number + 1;
  }
  if (keeps_in_arena()) all.last = last_step;
  if (writes_apart()) {
    all.home = Home::kApart;
    all.offset = bucket.range.offset * int64_t{sizeof(float)};
  }
  state_->bucket_storages.push_back(own);
  state_->storages.push_back(all);
}

void PlanBuilder::PlaceRest() {
  std::vector<ArenaRequest> requests;
  std::vector<size_t> owners;
  for (size_t i = 0; i < state_->storages.size(); ++i) {
    PlanStorage& storage = state_->storages[i];
    if (storage.home == Home::kArena && storage.bytes > 0) {
      requests.push_back({.bytes = storage.bytes, .first = storage.first, .last = storage.last});
      owners.push_back(i);
    } else if (storage.home == Home::kPersistent) {
      storage.offset = state_->memory.persistent;
      state_->memory.persistent += ArenaBytes(std::max<int64_t>(storage.bytes, 1));
    }
  }
  const ArenaLayout layout = PlaceInArena(requests, kAlignment);
  for (size_t i = 0; i < owners.size(); ++i) state_->storages[owners[i]].offset = layout.offsets[i];
  state_->memory.arena = layout.bytes;
}

}  // namespace lockstep::worker
