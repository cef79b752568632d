#include "common/object_store/s3_object_store.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/object_store/s3_on_fake.h"
#include "common/random/random.h"

namespace lockstep {
namespace {

using Catch::Contains;

// Of each request from now on, in this order; then none.
void Fail(FakeS3& fake, std::vector<S3Fault> faults) {
  fake.next_fault = [faults = std::move(faults), next = size_t{0}]() mutable {
    return next < faults.size() ? faults[next++] : S3Fault::kNone;
  };
}

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

constexpr uint64_t kAny = 64 << 20;

TEST_CASE("s3: a request that fails is sent again, with growing pauses", "[object_store]") {
  S3OnFake s3;
  const absl::Time start = s3.clock.Now();
  Fail(s3.fake, {S3Fault::kLost, S3Fault::kSlowDown, S3Fault::kTooMany, S3Fault::kConflict, S3Fault::kInternal});
  REQUIRE(s3.store->Put("a", "bytes", PutCondition::kNone).ok());
  CHECK(s3.fake.requests() == 6);
  const absl::Duration waited = s3.clock.Now() - start;
  CHECK(waited >= absl::Milliseconds(1550));  // half of 0.1 + 0.2 + 0.4 + 0.8 + 1.6 s
  CHECK(waited <= absl::Milliseconds(3100));
}

TEST_CASE("s3: a server that stays away is given up when the patience is spent", "[object_store]") {
  S3OnFake s3;
  const S3Fault fault = GENERATE(S3Fault::kLost, S3Fault::kSlowDown, S3Fault::kConflict);
  s3.fake.next_fault = [fault] { return fault; };
  const absl::Time start = s3.clock.Now();
  const absl::Status status = s3.store->Put("a", "bytes", PutCondition::kIfAbsent);
  CHECK(absl::IsUnavailable(status));
  CHECK_THAT(MessageOf(status), Contains("PUT s3://models/runs/7/a at http://fake") && Contains("Gave up after"));
  CHECK(s3.clock.Now() - start <= absl::Seconds(61));
  CHECK(s3.clock.Now() - start >= absl::Seconds(50));
}

TEST_CASE("s3: a conditional put whose answer was lost is told as one that found something", "[object_store]") {
  S3OnFake s3;
  const S3Fault fault = GENERATE(S3Fault::kAnswerLost, S3Fault::kTwice, S3Fault::kInternal);
  Fail(s3.fake, {fault});
  CHECK(absl::IsAlreadyExists(s3.store->Put("slot", "mine", PutCondition::kIfAbsent)));
  CHECK(s3.store->Get("slot", kAny).value() == "mine");
}

TEST_CASE("s3: a server without conditions is refused at once, and told from one that ignores them", "[object_store]") {
  S3OnFake s3;
  s3.fake.conditions = FakeS3::Conditions::kRefused;
  const absl::Status status = s3.store->Put("slot", "mine", PutCondition::kIfAbsent);
  CHECK(absl::IsFailedPrecondition(status));
  CHECK_THAT(MessageOf(status), Contains("If-None-Match") && Contains("answers 501 NotImplemented"));
  CHECK(s3.fake.requests() == 1);
  CHECK(s3.store->Put("slot", "mine", PutCondition::kNone).ok());
}

TEST_CASE("s3: keys that are wrong or over, and a bucket that is not there, are said", "[object_store]") {
  S3OnFake s3;
  S3Credentials wrong = s3.fake.keys;
  S3CredentialsSource credentials(
      [](const char* name) -> std::optional<std::string> {
        return absl::string_view(name) == "AWS_ACCESS_KEY_ID" || absl::string_view(name) == "AWS_SECRET_ACCESS_KEY"
                   ? std::optional<std::string>("wrong")
                   : std::nullopt;
      },
      &s3.fake, [&] { return s3.clock.Now(); });
  S3ObjectStore other({"models", ""}, {"http", "fake", "/models", "us-east-1"}, &s3.fake, &credentials, {});
  CHECK(absl::IsPermissionDenied(other.Put("a", "", PutCondition::kNone)));
  S3ObjectStore nowhere({"gone", ""}, {"http", "fake", "/gone", "us-east-1"}, &s3.fake, s3.credentials.get(), {});
  const absl::Status status = nowhere.Put("a", "", PutCondition::kNone);
  CHECK(absl::IsFailedPrecondition(status));
  CHECK_THAT(MessageOf(status), Contains("NoSuchBucket") && Contains("Create the bucket"));
}

TEST_CASE("s3: keys whose session is over are fetched anew, once", "[object_store]") {
  S3OnFake s3;
  Fail(s3.fake, {S3Fault::kExpired});
  CHECK(s3.store->Put("a", "", PutCondition::kNone).ok());
  CHECK(s3.fake.requests() == 2);
  Fail(s3.fake, {S3Fault::kExpired, S3Fault::kExpired});
  CHECK(absl::IsPermissionDenied(s3.store->Put("a", "", PutCondition::kNone)));
  CHECK(s3.fake.requests() == 4);
}

TEST_CASE("s3: a listing that is out of order, or a page of something else, is no listing", "[object_store]") {
  S3OnFake s3;
  for (const char* key : {"a/1", "a/2", "a/3"}) REQUIRE(s3.store->Put(key, "", PutCondition::kNone).ok());
  SECTION("out of order") {
    s3.fake.lists_in_order = false;
    CHECK(absl::IsFailedPrecondition(s3.store->List({"a/"}).status()));
  }
  SECTION("another page, once and for good") {
    const S3Fault fault = GENERATE(S3Fault::kPage, S3Fault::kHidden);
    Fail(s3.fake, {fault});
    CHECK(s3.store->List({"a/"})->objects.size() == 3);
    s3.fake.next_fault = [fault] { return fault; };
    CHECK(absl::IsUnavailable(s3.store->List({"a/"}).status()));
  }
}

std::vector<UploadedPart> SendParts(S3ObjectStore& store, const Upload& upload) {
  return {store.PutPart(upload, 1, std::string(kMinPartBytes, 'a')).value(), store.PutPart(upload, 2, "tail").value()};
}

TEST_CASE("s3: parts have checksums where the server takes them", "[object_store]") {
  S3OnFake s3;
  s3.fake.knows_checksums = GENERATE(true, false);
  s3.fake.refuses_checksums = !s3.fake.knows_checksums && GENERATE(true, false);
  const Upload upload = s3.store->StartUpload("big").value();
  CHECK(upload.takes_checksums == s3.fake.knows_checksums);
  CHECK(s3.store->CompleteUpload(upload, SendParts(*s3.store, upload)).ok());
  CHECK(s3.store->Head("big")->size == kMinPartBytes + 4);
}

TEST_CASE("s3: the end of an upload is found out when its answer was lost, or hides an error", "[object_store]") {
  S3OnFake s3;
  const S3Fault fault = GENERATE(S3Fault::kAnswerLost, S3Fault::kTwice, S3Fault::kInternal, S3Fault::kHidden,
                                 S3Fault::kPage, S3Fault::kLost);
  const Upload upload = s3.store->StartUpload("big").value();
  const std::vector<UploadedPart> parts = SendParts(*s3.store, upload);
  Fail(s3.fake, {fault});
  CHECK(s3.store->CompleteUpload(upload, parts).ok());
  CHECK(s3.store->Head("big")->size == kMinPartBytes + 4);
  // Another object in its place is not taken for it.
  REQUIRE(s3.store->Put("big", std::string(kMinPartBytes + 4, 'b'), PutCondition::kNone).ok());
  CHECK(absl::IsNotFound(s3.store->CompleteUpload(upload, parts)));
}

// One client; whatever is lost or doubled, an object holds what the calls said, or may have left there.
TEST_CASE("s3: whatever happens to requests, an object is what the calls say", "[object_store]") {
  const int seed = GENERATE(range(1, 200));
  CAPTURE(seed);
  const RandomStream random = RandomStream::For(static_cast<uint64_t>(seed), 0);
  uint64_t drawn = 0;
  const auto below = [&](uint64_t n) { return random.At(drawn++) % n; };
  S3OnFake s3;
  const uint64_t calm = 1 + below(3);
  s3.fake.next_fault = [&] { return below(calm + 9) < calm ? S3Fault::kNone : static_cast<S3Fault>(1 + below(9)); };
  std::map<std::string, std::set<std::string>> possible;  // "" : there is none
  for (const char* key : {"a", "b", "c"}) possible[key] = {""};
  int unknown = 0;
  for (int turn = 0; turn < 30; ++turn) {
    const std::string key(1, static_cast<char>('a' + below(3)));
    const std::string bytes = absl::StrCat("turn ", turn);
    std::set<std::string>& states = possible[key];
    CAPTURE(turn, key);
    switch (below(4)) {
      case 0: {
        const absl::Status put = s3.store->Put(key, bytes, PutCondition::kNone);
        REQUIRE((put.ok() || absl::IsUnavailable(put)));
        if (put.ok()) states.clear();
        states.insert(bytes);
        unknown += put.ok() ? 0 : 1;
        break;
      }
      case 1: {
        const absl::Status put = s3.store->Put(key, bytes, PutCondition::kIfAbsent);
        if (put.ok()) {
          REQUIRE(states.count("") == 1);
          states = {bytes};
        } else if (absl::IsAlreadyExists(put)) {
          if (states.count("") == 1) states.insert(bytes);
          states.erase("");
        } else {
          REQUIRE(absl::IsUnavailable(put));
          if (states.count("") == 1) states.insert(bytes);
        }
        break;
      }
      case 2: {
        const absl::Status gone = s3.store->Delete(key);
        REQUIRE((gone.ok() || absl::IsUnavailable(gone)));
        if (gone.ok()) states.clear();
        states.insert("");
        break;
      }
      default: {
        const absl::StatusOr<std::string> got = s3.store->Get(key, kAny);
        if (absl::IsUnavailable(got.status())) break;
        REQUIRE((got.ok() || absl::IsNotFound(got.status())));
        REQUIRE(states.count(got.value_or("")) == 1);
        states = {got.value_or("")};
      }
    }
  }
  s3.fake.next_fault = [] { return S3Fault::kNone; };
  for (const auto& [key, states] : possible) CHECK(states.count(s3.store->Get(key, kAny).value_or("")) == 1);
}

}  // namespace
}  // namespace lockstep
