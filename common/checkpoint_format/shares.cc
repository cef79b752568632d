#include "common/checkpoint_format/shares.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/naming.h"
#include "common/checkpoint_format/safetensors.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::Status CheckLayout(absl::Span<const CheckpointTensor> layout) {
  std::set<absl::string_view> names;
  for (const CheckpointTensor& tensor : layout) {
    if (!IsInGroup(tensor.spec.name, tensor.group)) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.spec.name, "' is in group '", tensor.group,
                                                     "'; groups are model, optimizer and ema (for ", kEmaPrefix,
                                                     "NAME)"));
    }
    if (!names.insert(tensor.spec.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.spec.name, "' is twice in one state"));
    }
  }
  return absl::OkStatus();
}

// Adds the files of one group: its tensors are spread over the shares that have loads, each share's in the order of a
// file. With `frozen_last` the frozen ones go to the share after those.
absl::Status AddGroup(absl::Span<const CheckpointTensor> layout, absl::string_view group, bool frozen_last,
                      absl::Span<uint64_t> loads, SharePlan& plan) {
  std::vector<std::vector<int>> of_share(plan.shares.size());
  std::vector<int> members;
  std::vector<uint64_t> sizes;
  for (size_t i = 0; i < layout.size(); ++i) {
    if (layout[i].group != group) continue;
    LS_ASSIGN_OR_RETURN(const int64_t bytes, CheckedByteSize(layout[i].spec.dtype, layout[i].spec.shape));
    if (frozen_last && layout[i].frozen) {
      of_share.back().push_back(static_cast<int>(i));
      continue;
    }
    members.push_back(static_cast<int>(i));
    sizes.push_back(static_cast<uint64_t>(bytes));
  }
  const std::vector<int> share_of = SpreadBySize(sizes, loads);
  for (size_t i = 0; i < members.size(); ++i) of_share[share_of[i]].push_back(members[i]);
  const int count = static_cast<int>(
      std::count_if(of_share.begin(), of_share.end(), [](const std::vector<int>& t) { return !t.empty(); }));
  int index = 0;
  for (size_t s = 0; s < of_share.size(); ++s) {
    if (of_share[s].empty()) continue;
    std::vector<TensorSpec> specs;
    for (const int tensor : of_share[s]) specs.push_back(layout[tensor].spec);
    ShareFile file{std::string(group), layout::ShardPath(group, index++, count), {}};
    for (const int place : SafetensorsOrder(specs)) file.tensors.push_back(of_share[s][place]);
    plan.shares[s].files.push_back(std::move(file));
  }
  return absl::OkStatus();
}

absl::StatusOr<SharePlan> Plan(absl::Span<const CheckpointTensor> layout, int shares, bool frozen_last) {
  const int least = frozen_last ? 2 : 1;
  if (shares < least) {
    return absl::InvalidArgumentError(
        absl::StrCat("a state is cut into ", shares, " shares; expected ", least, " or more"));
  }
  LS_RETURN_IF_ERROR(CheckLayout(layout));
  SharePlan plan;
  plan.shares.resize(shares);
  std::vector<uint64_t> loads(shares - (frozen_last ? 1 : 0), 0);
  for (const absl::string_view group : kGroups) {
    LS_RETURN_IF_ERROR(AddGroup(layout, group, frozen_last, absl::MakeSpan(loads), plan));
  }
  for (Share& share : plan.shares) {
    for (size_t f = 0; f < share.files.size(); ++f) {
      for (const int tensor : share.files[f].tensors) {
        LS_ASSIGN_OR_RETURN(const int64_t bytes, CheckedByteSize(layout[tensor].spec.dtype, layout[tensor].spec.shape));
        share.pieces.push_back({tensor, static_cast<int>(f), share.bytes, static_cast<uint64_t>(bytes)});
        share.bytes += static_cast<uint64_t>(bytes);
      }
    }
  }
  return plan;
}

}  // namespace

std::vector<int> SpreadBySize(absl::Span<const uint64_t> sizes, absl::Span<uint64_t> loads) {
  LS_CHECK(!loads.empty(), "there is a share");
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
  std::set<std::tuple<uint64_t, size_t, size_t>> lightest;  // bytes, items, share
  for (size_t s = 0; s < loads.size(); ++s) lightest.emplace(loads[s], 0, s);
  std::vector<int> share_of(sizes.size());
  for (const size_t i : order) {
    const auto [bytes, items, share] = *lightest.begin();
    lightest.erase(lightest.begin());
    lightest.emplace(bytes + sizes[i], items + 1, share);
    loads[share] += sizes[i];
    share_of[i] = static_cast<int>(share);
  }
  return share_of;
}

uint64_t FrozenShareBytes(absl::Span<const CheckpointTensor> layout) {
  uint64_t bytes = 0;
  for (const CheckpointTensor& tensor : layout) {
    if (tensor.frozen) bytes += CheckedByteSize(tensor.spec.dtype, tensor.spec.shape).value_or(0);
  }
  return bytes >= kLeastFrozenBytes ? bytes : 0;
}

absl::StatusOr<SharePlan> PlanSave(absl::Span<const CheckpointTensor> layout, int shares) {
  return Plan(layout, shares, HasFrozenShare(layout));
}

absl::StatusOr<SharePlan> PlanShares(absl::Span<const CheckpointTensor> layout, int shares) {
  return Plan(layout, shares, /*frozen_last=*/false);
}

}  // namespace lockstep
