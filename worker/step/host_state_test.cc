#include "worker/step/host_state.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/digest/state_digest.h"

namespace lockstep::worker {
namespace {

StateLayout Layout() {
  StateLayout layout;
  layout.tensors.push_back({{"b", DType::kF32, {5}}, StateGroup::kModel, StateKind::kParameter, "b"});
  layout.tensors.push_back({{"a", DType::kF32, {2, 3}}, StateGroup::kModel, StateKind::kParameter, "a"});
  layout.tensors.push_back({{"momentum_buffer.a", DType::kF32, {2, 3}}, StateGroup::kOptimizer, StateKind::kSlot, "a"});
  layout.tensors.push_back({{ExponentName("a"), DType::kI32, {}}, StateGroup::kOptimizer, StateKind::kExponent, "a"});
  layout.tensors.push_back({{kStepCounterName, DType::kI64, {}}, StateGroup::kOptimizer, StateKind::kCounter, ""});
  return layout;
}

HostState Filled() {
  HostState state = HostState::Create(Layout()).value();
  float next = 1;
  for (const int t : {0, 1, 2}) {
    for (float& value : state.floats(t)) value = next++;
  }
  state.exponent(3) = -37;
  state.step() = 12;
  return state;
}

TEST_CASE("state: its digest is that of the tensors one by one", "[state]") {
  HostState state = Filled();
  StateDigestBuilder digest;
  for (size_t t = 0; t < Layout().tensors.size(); ++t) {
    const auto bytes = state.tensor(static_cast<int>(t));
    REQUIRE(digest.Add(Layout().tensors[t].spec, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}).ok());
  }
  CHECK(state.Digest() == digest.Hex());

  state.exponent(3) = -36;
  CHECK(state.Digest() != digest.Hex());
}

TEST_CASE("state: any number of shares, read in any pieces, carries it whole", "[state]") {
  const HostState state = Filled();
  for (int shares = 1; shares <= 7; ++shares) {
    for (const uint64_t chunk : {uint64_t{1}, uint64_t{7}, uint64_t{1000}}) {
      HostState copy = HostState::Create(Layout()).value();
      const SharePlan plan = PlanShares(state.CheckpointLayout(), shares).value();
      for (const Share& share : plan.shares) {
        for (uint64_t offset = 0; offset < share.bytes; offset += chunk) {
          std::vector<char> piece(std::min(chunk, share.bytes - offset));
          state.ReadShare(share, offset, absl::MakeSpan(piece));
          const std::vector<absl::string_view> views = state.ViewShare(share, offset, piece.size());
          CHECK(absl::StrJoin(views, "") == absl::string_view(piece.data(), piece.size()));
          copy.WriteShare(share, offset, piece);
        }
      }
      CHECK(copy.Digest() == state.Digest());
      CHECK(std::equal(copy.bytes().begin(), copy.bytes().end(), state.bytes().begin()));
    }
  }
}

TEST_CASE("state: initial tensors of another form are refused by name", "[state]") {
  HostState state = HostState::Create(Layout()).value();
  std::vector<Tensor> initial;
  for (const StateTensor& tensor : Layout().tensors)
    initial.push_back(Tensor::Zeros(tensor.spec.dtype, tensor.spec.shape));
  CHECK(state.Load(initial).ok());

  initial[1] = Tensor::Zeros(DType::kF32, {3, 2});
  CHECK_THAT(std::string(state.Load(initial).message()), Catch::Matchers::Contains("'a' is F32[2, 3]"));
  initial.pop_back();
  CHECK_FALSE(state.Load(initial).ok());
}

}  // namespace
}  // namespace lockstep::worker
