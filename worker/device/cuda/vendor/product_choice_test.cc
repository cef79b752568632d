#include "worker/device/cuda/vendor/product_choice.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace lockstep::device::cuda {
namespace {

ProductChoice SomeProductChoice() {
  return {.math = "tf32",
          .version = 130100,
          .gpu = "sm_90x132",
          .workspace_bytes = 4194304,
          .algorithm = {1, 0xfedcba9876543210u, 0, ~uint64_t{0}, 42, 0, 0, 0x8000000000000000u}};
}

ProductCandidate Usable(uint64_t workspace, SumScheme scheme, int32_t splits) {
  return {.usable = true, .workspace_bytes = workspace, .scheme = scheme, .splits = splits};
}

constexpr uint64_t kLimit = 1024;

}  // namespace

TEST_CASE("product choice: a name spells a choice and is read back", "[cuda]") {
  const std::string name = PrintProductChoice(SomeProductChoice());

  CHECK(name ==
        "cublaslt:tf32:130100:sm_90x132:4194304:"
        "0000000000000001fedcba98765432100000000000000000ffffffffffffffff"
        "000000000000002a000000000000000000000000000000008000000000000000");
  const auto read = ParseProductChoice(name);
  REQUIRE(read.ok());
  CHECK(*read == SomeProductChoice());
}

TEST_CASE("product choice: a name that nobody printed is refused", "[cuda]") {
  const std::string good = PrintProductChoice(SomeProductChoice());
  const std::string bytes = good.substr(good.size() - 128);
  std::vector<std::string> bad = {
      "",
      "cublaslt",
      "cublaslt:",
      "cublaslt:::::",
      "dnnl:jit:avx2",
      "own:product",
      good + ":",
      good + "0",
      good.substr(0, good.size() - 1),
      " " + good,
      good + std::string(1, '\0'),
      "cublaslt:f32:-1:sm_90x132:0:" + bytes,
      "cublaslt:f32:+1:sm_90x132:0:" + bytes,
      "cublaslt:f32:01:sm_90x132:0:" + bytes,
      "cublaslt:f32: 1:sm_90x132:0:" + bytes,
      "cublaslt:f32:1:sm_90x132:18446744073709551616:" + bytes,
      "cublaslt:f32:1:sm_90x132::" + bytes,
      "cublaslt:f32:1:sm_90x132:0x10:" + bytes,
      "cublaslt:f32:1:0:" + bytes,
  };
  for (const char wrong : {'A', 'g', ' ', '-', '\0', '\xff'}) {
    std::string name = good;
    name[name.size() - 5] = wrong;
    bad.push_back(name);
  }
  for (const std::string& name : bad) {
    INFO(name);
    CHECK(absl::IsInvalidArgument(ParseProductChoice(name).status()));
  }
}

TEST_CASE("product choice: the best answer whose sums have a fixed order and whose scratch fits is taken", "[cuda]") {
  ProductCandidate unusable = Usable(0, SumScheme::kNone, 1);
  unusable.usable = false;

  const std::vector<ProductCandidate> candidates = {unusable,
                                                    Usable(0, SumScheme::kInPlace, 4),
                                                    Usable(0, SumScheme::kOutputType, 2),
                                                    Usable(0, SumScheme::kNone, 2),
                                                    Usable(0, SumScheme{3}, 2),
                                                    Usable(kLimit + 1, SumScheme::kNone, 1),
                                                    Usable(kLimit, SumScheme::kComputeType, 3),
                                                    Usable(0, SumScheme::kNone, 1)};
  const auto chosen = ChooseProducts(candidates, kLimit, 1);

  REQUIRE(chosen.ok());
  CHECK(*chosen == std::vector<size_t>{6});
  CHECK(ChooseProducts(absl::MakeSpan(candidates).subspan(7), kLimit, 1)->front() == 0);
  CHECK(*ChooseProducts(candidates, kLimit, 9) == std::vector<size_t>{6, 7});
}

TEST_CASE("product choice: where no answer will do the reason counts them", "[cuda]") {
  const std::vector<ProductCandidate> candidates = {Usable(0, SumScheme::kInPlace, 4),
                                                    Usable(2 * kLimit, SumScheme::kNone, 1)};

  const absl::Status none = ChooseProducts(candidates, kLimit, 1).status();

  CHECK(absl::IsUnimplemented(none));
  CHECK_THAT(std::string(none.message()), Catch::Contains("offers 2 algorithms"));
  CHECK(absl::IsUnimplemented(ChooseProducts({}, kLimit, 1).status()));
}

}  // namespace lockstep::device::cuda
