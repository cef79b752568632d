// Connections that are cut after every number of bytes, in the request and in the answer: a call says what happened, or
// that it does not know. Against a fake server, and a real one when LOCKSTEP_TEST_S3 and AWS_ENDPOINT_URL name one at
// http://127.0.0.1:PORT.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/object_store/cutting_proxy.h"
#include "common/object_store/http_client.h"
#include "common/object_store/s3_on_fake.h"
#include "common/object_store/test_http_server.h"

namespace lockstep {
namespace {

using Way = CuttingProxy::Way;

constexpr uint64_t kAny = 1 << 20;

// A store behind a proxy.
struct CutStore {
  explicit CutStore(bool real_server) {
    prefix = absl::StrCat("cuts-", getpid(), "-", absl::ToUnixMicros(absl::Now()), "/");
    if (real_server) {
      const std::string endpoint = std::getenv("AWS_ENDPOINT_URL");
      int port = 0;
      REQUIRE(absl::SimpleAtoi(endpoint.substr(endpoint.rfind(':') + 1), &port));
      proxy = std::make_unique<CuttingProxy>(port);
      const std::string cut = absl::StrCat("http://127.0.0.1:", proxy->port());
      const Environment environment = [cut, inner = ProcessEnvironment()](const char* name) {
        return absl::string_view(name) == "AWS_ENDPOINT_URL" ? std::optional<std::string>(cut) : inner(name);
      };
      real = S3ObjectStore::Open(std::getenv("LOCKSTEP_TEST_S3"), environment,
                                 {.patience = absl::Seconds(1), .first_pause = absl::Milliseconds(2)})
                 .value();
      store = real.get();
      return;
    }
    server = std::make_unique<TestHttpServer>([this](const TestHttpServer::Request& request) {
      HttpClientRequest http;
      http.method = request.method;
      http.url = absl::StrCat("http://", request.headers.at("host"), request.target);
      http.headers = request.headers;
      http.body = request.body;
      return fake->fake.Send(http).value_or(HttpAnswer());
    });
    proxy = std::make_unique<CuttingProxy>(server->port());
    client = std::make_unique<HttpClient>(HttpClientOptions());
    fake = std::make_unique<S3OnFake>(client.get(), absl::StrCat("127.0.0.1:", proxy->port()));
    fake->fake.page_keys = 1000;
    store = fake->store.get();
  }
  ~CutStore() {
    if (!real) return;
    proxy->Cut(Way::kRequests, 0, 0);
    const Listing objects = real->List({prefix}).value();
    for (const ListedObject& object : objects.objects) real->Delete(object.key).IgnoreError();
    const std::vector<Upload> uploads = real->ListUploads(prefix).value();
    for (const Upload& upload : uploads) real->AbortUpload(upload).IgnoreError();
  }

  std::string prefix;
  std::unique_ptr<HttpClient> client;
  std::unique_ptr<S3OnFake> fake;
  std::unique_ptr<TestHttpServer> server;
  std::unique_ptr<CuttingProxy> proxy;
  std::unique_ptr<S3ObjectStore> real;
  ObjectStore* store = nullptr;
};

struct CutAt {
  Way way;
  uint64_t bytes;
  int times;
};

// Calls `attempt` with every cut of a request of about `request` bytes and an answer of about `answer`: it holds
// between the two functions that `attempt` gets.
template <typename Attempt>
void ForEachCut(CutStore& cut, uint64_t request, uint64_t answer, const Attempt& attempt) {
  int cuts = 0, number = 0;
  const auto run = [&](const CutAt& at) {
    CAPTURE(at.bytes, at.times, at.way == Way::kRequests);
    attempt(
        ++number, [&] { cut.proxy->Cut(at.way, at.bytes, at.times); },
        [&] {
          cuts += cut.proxy->cuts();
          cut.proxy->Cut(Way::kRequests, 0, 0);
        });
  };
  const int kAlways = 1'000'000;
  const uint64_t cuts_each = cut.real ? 10 : 40;  // a real server takes its time over connections that break
  for (uint64_t bytes = 0; bytes < request; bytes += request / cuts_each + 1) {
    run({Way::kRequests, bytes, 1});
    run({Way::kRequests, bytes, 3});
  }
  for (uint64_t bytes = 0; bytes < answer; bytes += answer / cuts_each + 1) {
    run({Way::kAnswers, bytes, 1});
    run({Way::kAnswers, bytes, 2});
  }
  run({Way::kRequests, request / 2, kAlways});
  run({Way::kAnswers, 10, kAlways});
  CHECK(cuts > number / 2);
}

bool IsReal() { return GENERATE(range(0, std::getenv("LOCKSTEP_TEST_S3") == nullptr ? 1 : 2)) == 1; }

TEST_CASE("s3 cuts: a put says what it did, and a conditional one never loses its object", "[object_store]") {
  CutStore cut(IsReal());
  const std::string body(5000, 'p');
  ForEachCut(cut, 6000, 400, [&](int number, const auto& arm, const auto& calm) {
    const std::string key = absl::StrCat(cut.prefix, "put/", number);
    const std::string bytes = absl::StrCat(number, body);
    arm();
    const absl::Status put = cut.store->Put(key, bytes, PutCondition::kIfAbsent);
    calm();
    const absl::StatusOr<std::string> got = cut.store->Get(key, kAny);
    if (put.ok() || absl::IsAlreadyExists(put)) {
      CHECK(got.value_or("") == bytes);
    } else {
      REQUIRE(absl::IsUnavailable(put));
      CHECK((absl::IsNotFound(got.status()) || got.value_or("") == bytes));
    }
  });
}

TEST_CASE("s3 cuts: what is read is whole, or nothing", "[object_store]") {
  CutStore cut(IsReal());
  const std::string key = cut.prefix + "get";
  const std::string bytes(20'000, 'g');
  REQUIRE(cut.store->Put(key, bytes, PutCondition::kNone).ok());
  ForEachCut(cut, 500, 20'300, [&](int, const auto& arm, const auto& calm) {
    arm();
    const absl::StatusOr<std::string> got = cut.store->Get(key, kAny);
    const absl::StatusOr<std::string> range = cut.store->GetRange(key, 5000, 10'000);
    calm();
    CHECK((absl::IsUnavailable(got.status()) || got.value_or("") == bytes));
    CHECK((absl::IsUnavailable(range.status()) || range.value_or("") == bytes.substr(5000, 10'000)));
  });
}

TEST_CASE("s3 cuts: a listing is whole, or none", "[object_store]") {
  CutStore cut(IsReal());
  for (int i = 0; i < 30; ++i) {
    REQUIRE(cut.store->Put(absl::StrCat(cut.prefix, "list/", i), "", PutCondition::kNone).ok());
  }
  ForEachCut(cut, 600, 4000, [&](int, const auto& arm, const auto& calm) {
    arm();
    const absl::StatusOr<Listing> listing = cut.store->List({cut.prefix + "list/"});
    calm();
    if (!listing.ok()) REQUIRE(absl::IsUnavailable(listing.status()));
    if (listing.ok()) CHECK(listing->objects.size() == 30);
  });
}

TEST_CASE("s3 cuts: parts and the end of an upload give the whole object, or are unknown", "[object_store]") {
  CutStore cut(IsReal());
  const std::string body(200'000, 'u');
  ForEachCut(cut, 201'000, 400, [&](int number, const auto& arm, const auto& calm) {
    const std::string key = absl::StrCat(cut.prefix, "part/", number);
    const std::string bytes = absl::StrCat(number, body);
    arm();
    const absl::StatusOr<Upload> upload = cut.store->StartUpload(key);
    if (!upload.ok()) {
      REQUIRE(absl::IsUnavailable(upload.status()));
      return calm();
    }
    const absl::StatusOr<UploadedPart> part = cut.store->PutPart(*upload, 1, bytes);
    calm();
    if (!part.ok()) {
      REQUIRE(absl::IsUnavailable(part.status()));
      return;
    }
    REQUIRE(cut.store->CompleteUpload(*upload, {*part}).ok());
    CHECK(cut.store->Get(key, kAny).value_or("") == bytes);
  });
  ForEachCut(cut, 1000, 700, [&](int number, const auto& arm, const auto& calm) {
    const std::string key = absl::StrCat(cut.prefix, "complete/", number);
    const Upload upload = cut.store->StartUpload(key).value();
    const UploadedPart part = cut.store->PutPart(upload, 1, body).value();
    arm();
    const absl::Status completed = cut.store->CompleteUpload(upload, {part});
    calm();
    if (!completed.ok()) {
      REQUIRE(absl::IsUnavailable(completed));
      REQUIRE(cut.store->CompleteUpload(upload, {part}).ok());
    }
    CHECK(cut.store->Get(key, kAny).value_or("") == body);
  });
}

}  // namespace
}  // namespace lockstep
