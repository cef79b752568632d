#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <string>

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

TEST_CASE("digest: a tensor's digest covers exactly its name, dtype, shape and bytes", "[digest]") {
  const TensorSpec spec{"w", DType::kF32, {1, 2}};
  const std::string bytes("\x01\x02\x03\x04\x05\x06\x07\x08", 8);
  // u32 1 · w · u32 3 · F32 · u32 2 · i64 1 · i64 2 · bytes
  const std::string encoded = std::string("\1\0\0\0w\3\0\0\0F32\2\0\0\0", 16) + std::string("\1\0\0\0\0\0\0\0", 8) +
                              std::string("\2\0\0\0\0\0\0\0", 8) + bytes;
  TensorDigest digest(spec);
  digest.Update(bytes.substr(0, 3));
  digest.Update(bytes.substr(3));
  CHECK(ToHex(digest.Finish()) == Sha256Hex(encoded));
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
  CHECK(expected == [&] {
    TensorDigest da(a), db(b);
    da.Update(bytes);
    db.Update(bytes);
    const Sha256Digest ra = da.Finish(), rb = db.Finish();
    return Sha256Hex(std::string(ra.begin(), ra.end()) + std::string(rb.begin(), rb.end()));
  }());

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
