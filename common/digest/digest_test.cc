#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "common/digest/crc32c.h"
#include "common/digest/hmac.h"
#include "common/digest/sha256.h"
#include "common/digest/state_digest.h"

namespace lockstep {
namespace {

#if defined(__x86_64__)
// Whether this thread's vector registers hold anything above their lowest 128 bits; false where the CPU cannot tell.
bool UpperHalvesInUse() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(1, 0, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0) return false;
  if (__get_cpuid_count(0xd, 1, &a, &b, &c, &d) == 0 || (a & (1u << 2)) == 0) return false;
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
  return (low & (1u << 2)) != 0;
}

TEST_CASE("digest: a CRC leaves no vector register in use, which would slow down what the thread does next",
          "[digest]") {
  for (const size_t size : {1, 100, 512, 4096, 100'000}) {
    Crc32c(std::string(size, 'x'));
    CHECK_FALSE(UpperHalvesInUse());
    Sha256Hex(std::string(size, 'x'));
    CHECK_FALSE(UpperHalvesInUse());
  }
}
#endif

TEST_CASE("digest: CRC-32C gives the published check value, whole or in pieces", "[digest]") {
  CHECK(Crc32c("123456789") == 0xe3069283u);
  CHECK(Crc32c("") == 0u);
  CHECK(Crc32c("56789", Crc32c("1234")) == 0xe3069283u);
  CHECK(Crc32c(std::string(32, '\0')) == 0x8a9136aau);  // RFC 3720, B.4
}

TEST_CASE("digest: the masked CRC of an event record is TensorFlow's", "[digest]") {
  const std::string length("\x18\0\0\0\0\0\0\0", 8);
  CHECK(MaskCrc32c(Crc32c(length)) == 0x224b7fa3u);
  const std::string payload = std::string("\x09\x00\x00\x80\x38\x99\xd6\xd7\x41\x1a\x0d", 11) + "brain.Event:2";
  CHECK(MaskCrc32c(Crc32c(payload)) == 0xab364b12u);
}

TEST_CASE("digest: SHA-256 gives the published values, whole or in pieces", "[digest]") {
  const std::string abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  CHECK(Sha256Hex("abc") == abc);
  CHECK(Sha256Hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 hash;
  hash.Update("a");
  hash.Update("");
  hash.Update("bc");
  CHECK(ToHex(hash.Finish()) == abc);
}

TEST_CASE("digest: HMAC with SHA-256 gives the values of RFC 4231", "[digest]") {
  CHECK(ToHex(HmacSha256("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(ToHex(HmacSha256(std::string(20, '\x0b'), "Hi There")) ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
}

std::string AsBytes(const Sha256Digest& digest) { return {digest.begin(), digest.end()}; }

TEST_CASE("digest: a tensor's digest covers exactly its name, dtype, shape and bytes", "[digest]") {
  const TensorSpec spec{"w", DType::kF32, {1, 2}};
  const std::string bytes("\x01\x02\x03\x04\x05\x06\x07\x08", 8);
  // u32 1 · w · u32 3 · F32 · u32 2 · i64 1 · i64 2
  const std::string head = std::string("\1\0\0\0w\3\0\0\0F32\2\0\0\0", 16) + std::string("\1\0\0\0\0\0\0\0", 8) +
                           std::string("\2\0\0\0\0\0\0\0", 8);

  const TensorDigests digests = DigestTensor(spec, bytes);

  REQUIRE(digests.leaves.size() == 1);
  CHECK(ToHex(digests.leaves[0]) == Sha256Hex(bytes));
  CHECK(ToHex(digests.digest) == Sha256Hex(head + AsBytes(digests.leaves[0])));
  FlatTensorDigest flat(spec);
  flat.Update(bytes.substr(0, 3));
  flat.Update(bytes.substr(3));
  CHECK(ToHex(flat.Finish()) == Sha256Hex(head + bytes));
}

TEST_CASE("digest: a tensor has a leaf for every 4 MiB and one for the rest", "[digest]") {
  CHECK(LeafCount(0) == 0);
  CHECK(LeafCount(1) == 1);
  CHECK(LeafCount(kLeafBytes) == 1);
  CHECK(LeafCount(kLeafBytes + 1) == 2);
  CHECK(LeafCount(~uint64_t{0}) == uint64_t{1} << 42);
  CHECK(LeafSize(2 * kLeafBytes + 5, 1) == kLeafBytes);
  CHECK(LeafSize(2 * kLeafBytes + 5, 2) == 5);
  CHECK(LeafSize(kLeafBytes, 0) == kLeafBytes);

  const TensorSpec spec{"w", DType::kU8, {static_cast<int64_t>(2 * kLeafBytes + 5)}};
  std::string bytes(2 * kLeafBytes + 5, 'a');
  const TensorDigests before = DigestTensor(spec, bytes);
  bytes[kLeafBytes] = 'b';
  const TensorDigests after = DigestTensor(spec, bytes);

  REQUIRE(after.leaves.size() == 3);
  CHECK(after.leaves[0] == before.leaves[0]);
  CHECK(after.leaves[1] == Sha256Of(bytes.substr(kLeafBytes, kLeafBytes)));
  CHECK(after.leaves[1] != before.leaves[1]);
  CHECK(after.leaves[2] == Sha256Of("aaaaa"));
  CHECK(after.digest == TensorDigestOf(spec, after.leaves));
  CHECK(after.digest != before.digest);
  CHECK(DigestTensor({"w", DType::kF32, {0, 3}}, "").leaves.empty());
}

TEST_CASE("digest: a state gives the same digests on any number of threads", "[digest]") {
  std::vector<std::string> bytes;
  for (size_t t = 0; t < 5; ++t) bytes.emplace_back(3 * kLeafBytes * t + t, static_cast<char>('a' + t));
  std::vector<TensorSpec> specs;
  for (size_t t = 0; t < bytes.size(); ++t) {
    specs.push_back({"t" + std::to_string(5 - t), DType::kU8, {static_cast<int64_t>(bytes[t].size())}});
  }
  std::vector<TensorBytes> tensors;
  StateDigestBuilder one_by_one;
  uint64_t total = 0;
  for (size_t t = 0; t < bytes.size(); ++t) {
    tensors.push_back({&specs[t], bytes[t]});
    REQUIRE(one_by_one.Add(specs[t], bytes[t]).ok());
    total += bytes[t].size();
  }

  for (const int threads : {0, 1, 3, 100}) {
    std::atomic<uint64_t> heard{0};
    const StateDigests state = DigestState(tensors, threads, [&heard](uint64_t more) { heard += more; });
    CHECK(state.state == one_by_one.Hex());
    CHECK(heard == total);
    REQUIRE(state.tensors.size() == bytes.size());
    for (size_t t = 0; t < bytes.size(); ++t) {
      CHECK(state.tensors[t].digest == DigestTensor(specs[t], bytes[t]).digest);
      CHECK(state.tensors[t].leaves == DigestTensor(specs[t], bytes[t]).leaves);
    }
  }
  CHECK(DigestState({}, 4).state == Sha256Hex(""));
}

TEST_CASE("digest: the state's digest ignores the order of arrival and nothing else", "[digest]") {
  const std::string bytes(8, 'x');
  const auto state = [&](std::vector<TensorSpec> specs, const std::string& content) {
    StateDigestBuilder digest;
    for (const TensorSpec& spec : specs) REQUIRE(digest.Add(spec, content).ok());
    return digest.Hex();
  };
  const TensorSpec a{"a", DType::kF32, {2}};
  const TensorSpec b{"b", DType::kI64, {}};
  const std::string expected = state({a, b}, bytes);

  CHECK(state({b, a}, bytes) == expected);
  CHECK(expected == Sha256Hex(AsBytes(DigestTensor(a, bytes).digest) + AsBytes(DigestTensor(b, bytes).digest)));

  CHECK(state({a, {"b", DType::kU64, {}}}, bytes) != expected);
  CHECK(state({a, {"b", DType::kI64, {1}}}, bytes) != expected);
  CHECK(state({a, {"c", DType::kI64, {}}}, bytes) != expected);
  CHECK(state({a}, bytes) != expected);
  CHECK(state({a, b}, std::string(8, 'y')) != expected);
}

TEST_CASE("digest: a tensor that comes twice is refused", "[digest]") {
  StateDigestBuilder digest;
  REQUIRE(digest.Add({"a", DType::kU8, {1}}, "x").ok());
  CHECK(digest.Add({"a", DType::kU8, {1}}, "x").code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep
