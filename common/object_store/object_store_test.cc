// What every ObjectStore keeps: in memory, S3 on a fake server (also over sockets), and a real server when
// LOCKSTEP_TEST_S3 has its URL (s3://bucket/prefix; keys and endpoint in the variables of AWS's tools).
#include "common/object_store/object_store.h"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/object_store/http_client.h"
#include "common/object_store/memory_object_store.h"
#include "common/object_store/s3_on_fake.h"
#include "common/object_store/test_http_server.h"

namespace lockstep {
namespace {

constexpr char kRealUrl[] = "LOCKSTEP_TEST_S3";

enum Kind { kMemory, kFake, kFakeOverSockets, kReal };

// One of each kind, and a prefix that nobody else uses.
struct AnyStore {
  explicit AnyStore(int kind) {
    static int last = 0;
    prefix = absl::StrCat("contract-", getpid(), "-", absl::ToUnixMicros(absl::Now()), "-", ++last, "/");
    if (kind == kMemory) memory = std::make_unique<MemoryObjectStore>();
    if (kind == kFake) fake = std::make_unique<S3OnFake>();
    if (kind == kFakeOverSockets) {
      client = std::make_unique<HttpClient>(HttpClientOptions());
      server = std::make_unique<TestHttpServer>([this](const TestHttpServer::Request& request) {
        HttpClientRequest http;
        http.method = request.method;
        http.url = absl::StrCat("http://", request.headers.at("host"), request.target);
        http.headers = request.headers;
        http.body = request.body;
        return fake->fake.Send(http).value_or(HttpAnswer());
      });
      fake = std::make_unique<S3OnFake>(client.get(), absl::StrCat("127.0.0.1:", server->port()));
    }
    if (kind == kReal) {
      real = S3ObjectStore::Open(std::getenv(kRealUrl), ProcessEnvironment(), {.patience = absl::Seconds(5)}).value();
    }
    store = real ? static_cast<ObjectStore*>(real.get()) : memory ? memory.get() : nullptr;
    if (store == nullptr) store = fake->store.get();
  }
  ~AnyStore() {
    if (!real) return;
    const Listing objects = real->List({prefix}).value();
    for (const ListedObject& object : objects.objects) real->Delete(object.key).IgnoreError();
    const std::vector<Upload> uploads = real->ListUploads(prefix).value();
    for (const Upload& upload : uploads) real->AbortUpload(upload).IgnoreError();
  }
  std::string Key(const std::string& name) const { return prefix + name; }

  std::string prefix;
  std::unique_ptr<MemoryObjectStore> memory;
  std::unique_ptr<S3OnFake> fake;
  std::unique_ptr<HttpClient> client;
  std::unique_ptr<TestHttpServer> server;
  std::unique_ptr<S3ObjectStore> real;
  ObjectStore* store = nullptr;
};

int AnyKind() { return GENERATE(range(0, std::getenv(kRealUrl) == nullptr ? 3 : 4)); }

std::string Bytes(size_t size, int seed) {
  std::string bytes(size, '\0');
  uint32_t state = 2654435761u * static_cast<uint32_t>(seed + 1);
  for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  return bytes;
}

constexpr uint64_t kAny = 64 << 20;

TEST_CASE("object store: what was put is read, whole and in ranges, until it is replaced or deleted",
          "[object_store]") {
  AnyStore any(AnyKind());
  ObjectStore& store = *any.store;
  const std::string key = any.Key("a/b-1_2.(x)'!*=+,:@");
  const std::string bytes = Bytes(100'000, 1);
  CHECK(absl::IsNotFound(store.Get(key, kAny).status()));
  CHECK(absl::IsNotFound(store.GetRange(key, 0, 1).status()));
  CHECK(absl::IsNotFound(store.Head(key).status()));
  REQUIRE(store.Put(key, bytes, PutCondition::kNone).ok());

  CHECK(store.Get(key, kAny).value() == bytes);
  CHECK(store.Get(key, bytes.size()).value() == bytes);
  CHECK(absl::IsResourceExhausted(store.Get(key, bytes.size() - 1).status()));
  CHECK(store.GetRange(key, 0, 1).value() == bytes.substr(0, 1));
  CHECK(store.GetRange(key, 777, 9999).value() == bytes.substr(777, 9999));
  CHECK(store.GetRange(key, 0, bytes.size()).value() == bytes);
  CHECK(store.GetRange(key, bytes.size() - 1, 1).value() == bytes.substr(bytes.size() - 1));
  CHECK(absl::IsDataLoss(store.GetRange(key, bytes.size() - 1, 2).status()));
  CHECK(absl::IsDataLoss(store.GetRange(key, bytes.size(), 1).status()));
  const ObjectFacts facts = store.Head(key).value();
  CHECK(facts.size == bytes.size());

  REQUIRE(store.Put(key, "", PutCondition::kNone).ok());
  CHECK(store.Get(key, 0).value().empty());
  CHECK(store.Head(key)->size == 0);
  CHECK(store.Head(key)->etag != facts.etag);
  CHECK(store.Delete(key).ok());
  CHECK(store.Delete(key).ok());
  CHECK(absl::IsNotFound(store.Get(key, kAny).status()));
}

TEST_CASE("object store: a copy is an object of its own", "[object_store]") {
  AnyStore any(AnyKind());
  ObjectStore& store = *any.store;
  const std::string from = any.Key("from/a_b=c");
  const std::string to = any.Key("to");
  REQUIRE(store.Put(from, "content", PutCondition::kNone).ok());
  REQUIRE(store.Copy(from, to).ok());
  REQUIRE(store.Delete(from).ok());
  CHECK(store.Get(to, kAny).value() == "content");
  REQUIRE(store.Put(from, "other", PutCondition::kNone).ok());
  REQUIRE(store.Copy(from, to).ok());
  CHECK(store.Get(to, kAny).value() == "other");
  CHECK(absl::IsNotFound(store.Copy(any.Key("none"), to)));
  CHECK(store.Get(to, kAny).value() == "other");
}

TEST_CASE("object store: a put that must find nothing keeps what is there", "[object_store]") {
  AnyStore any(AnyKind());
  ObjectStore& store = *any.store;
  const std::string key = any.Key("slot");
  REQUIRE(store.Put(key, "first", PutCondition::kIfAbsent).ok());
  CHECK(absl::IsAlreadyExists(store.Put(key, "second", PutCondition::kIfAbsent)));
  CHECK(store.Get(key, kAny).value() == "first");
  REQUIRE(store.Delete(key).ok());
  REQUIRE(store.Put(key, "third", PutCondition::kIfAbsent).ok());
  CHECK(store.Get(key, kAny).value() == "third");
  REQUIRE(store.Put(any.Key("empty"), "", PutCondition::kIfAbsent).ok());
  CHECK(absl::IsAlreadyExists(store.Put(any.Key("empty"), "", PutCondition::kIfAbsent)));
}

TEST_CASE("object store: of twenty puts at once that must find nothing exactly one wins", "[object_store]") {
  AnyStore any(AnyKind());
  for (int round = 0; round < 5; ++round) {
    const std::string key = any.Key(absl::StrCat("race-", round));
    std::vector<absl::Status> results(20);
    std::vector<std::thread> threads;
    for (int i = 0; i < 20; ++i) {
      threads.emplace_back(
          [&, i] { results[i] = any.store->Put(key, absl::StrCat("of ", i), PutCondition::kIfAbsent); });
    }
    for (std::thread& thread : threads) thread.join();
    const auto winner = std::find_if(results.begin(), results.end(), [](const auto& status) { return status.ok(); });
    REQUIRE(winner != results.end());
    CHECK(std::count_if(results.begin(), results.end(), absl::IsAlreadyExists) == 19);
    CHECK(any.store->Get(key, kAny).value() == absl::StrCat("of ", winner - results.begin()));
  }
}

TEST_CASE("object store: listings are in order, by prefix, from a key on, up to a limit and by folder",
          "[object_store]") {
  AnyStore any(AnyKind());
  ObjectStore& store = *any.store;
  std::vector<ListedObject> all;
  for (const char* name : {"a", "d-1", "d.x", "d/1", "d/10", "d/2", "d/e/1", "d/e/2", "d/f/1", "e", "zz"}) {
    all.push_back({any.Key(name), all.size()});
    REQUIRE(store.Put(all.back().key, std::string(all.size() - 1, 'x'), PutCondition::kNone).ok());
  }
  const auto slice = [&](size_t from, size_t to) {
    return std::vector<ListedObject>(all.begin() + from, all.begin() + to);
  };

  const Listing whole = store.List({any.prefix}).value();
  CHECK(whole.objects == all);
  CHECK_FALSE(whole.more);
  CHECK(store.List({any.Key("d/")})->objects == slice(3, 9));
  CHECK(store.List({any.Key("d/"), any.Key("d/10")})->objects == slice(5, 9));
  CHECK(store.List({any.Key("d/"), any.Key("d/0")})->objects == slice(3, 9));
  CHECK(store.List({any.Key("none")})->objects.empty());
  const Listing part = store.List({any.prefix, "", 4}).value();
  CHECK(part.objects == slice(0, 4));
  CHECK(part.more);
  CHECK_FALSE(store.List({any.prefix, "", 11})->more);
  const Listing next = store.List({any.prefix, part.objects.back().key, 4}).value();
  CHECK(next.objects == slice(4, 8));
  const Listing folders = store.List({any.Key("d/"), "", 100, true}).value();
  CHECK(folders.objects == slice(3, 6));
  CHECK(folders.folders == std::vector<std::string>{any.Key("d/e/"), any.Key("d/f/")});
  CHECK(store.List({any.prefix, "", 100, true})->folders == std::vector<std::string>{any.Key("d/")});
}

TEST_CASE("object store: an object in parts shows when it is complete, and completing again is harmless",
          "[object_store]") {
  AnyStore any(AnyKind());
  ObjectStore& store = *any.store;
  const std::string key = any.Key("shard.safetensors");
  const std::vector<std::string> bytes = {Bytes(kMinPartBytes, 1), Bytes(kMinPartBytes + 1, 2), Bytes(1000, 3)};
  const Upload upload = store.StartUpload(key).value();
  std::vector<UploadedPart> parts(3);
  REQUIRE(store.PutPart(upload, 2, "will be replaced").ok());
  for (const int i : {2, 0, 1}) parts[i] = store.PutPart(upload, i + 1, bytes[i]).value();
  CHECK(absl::IsNotFound(store.Head(key).status()));
  const std::vector<Upload> open = store.ListUploads(any.prefix).value();
  REQUIRE(open.size() == 1);
  CHECK(open[0].key == key);
  CHECK(open[0].id == upload.id);
  CHECK(store.ListUploads(any.Key("other")).value().empty());

  REQUIRE(store.CompleteUpload(upload, parts).ok());

  CHECK(store.Head(key)->size == 2 * kMinPartBytes + 1001);
  CHECK(store.Get(key, kAny).value() == absl::StrCat(bytes[0], bytes[1], bytes[2]));
  CHECK(store.GetRange(key, kMinPartBytes - 2, 4).value() ==
        bytes[0].substr(kMinPartBytes - 2) + bytes[1].substr(0, 2));
  CHECK(store.CompleteUpload(upload, parts).ok());
  CHECK(store.ListUploads(any.prefix).value().empty());
  CHECK(store.AbortUpload(upload).ok());
  CHECK(store.Head(key).ok());
}

TEST_CASE("object store: an upload that was given up leaves nothing and takes nothing", "[object_store]") {
  AnyStore any(AnyKind());
  ObjectStore& store = *any.store;
  const std::string key = any.Key("given-up");
  const Upload upload = store.StartUpload(key).value();
  const UploadedPart part = store.PutPart(upload, 1, "bytes").value();
  REQUIRE(store.AbortUpload(upload).ok());
  CHECK(store.AbortUpload(upload).ok());
  CHECK(store.ListUploads(any.prefix).value().empty());
  CHECK(absl::IsNotFound(store.PutPart(upload, 2, "bytes").status()));
  const absl::Status completed = store.CompleteUpload(upload, {part});
  CHECK((absl::IsNotFound(completed) || absl::IsUnavailable(completed)));
  CHECK(absl::IsNotFound(store.Head(key).status()));
}

TEST_CASE("object store: parts that are too small, unknown or out of order complete nothing", "[object_store]") {
  AnyStore any(AnyKind());
  ObjectStore& store = *any.store;
  const std::string key = any.Key("bad-parts");
  const Upload upload = store.StartUpload(key).value();
  const UploadedPart one = store.PutPart(upload, 1, "small").value();
  const UploadedPart two = store.PutPart(upload, 2, "last").value();
  UploadedPart unknown = two;
  unknown.etag = one.etag;
  CHECK(absl::IsInvalidArgument(store.CompleteUpload(upload, {one, two})));
  CHECK(absl::IsInvalidArgument(store.CompleteUpload(upload, {two, one})));
  CHECK(absl::IsInvalidArgument(store.CompleteUpload(upload, {two})));
  CHECK(absl::IsInvalidArgument(store.CompleteUpload(upload, {})));
  CHECK(absl::IsInvalidArgument(store.PutPart(upload, 0, "x").status()));
  CHECK(absl::IsInvalidArgument(store.PutPart(upload, kMaxParts + 1, "x").status()));
  const UploadedPart large = store.PutPart(upload, 1, Bytes(kMinPartBytes, 4)).value();
  CHECK(absl::IsInvalidArgument(store.CompleteUpload(upload, {large, unknown})));
  CHECK(absl::IsNotFound(store.Head(key).status()));
  CHECK(store.CompleteUpload(upload, {large, two}).ok());
  CHECK(store.Head(key)->size == kMinPartBytes + 4);
}

TEST_CASE("object store: keys that are none are refused before anything is sent", "[object_store]") {
  AnyStore any(AnyKind());
  ObjectStore& store = *any.store;
  CHECK(absl::IsInvalidArgument(store.Put("a//b", "", PutCondition::kNone)));
  CHECK(absl::IsInvalidArgument(store.Get("../a", kAny).status()));
  CHECK(absl::IsInvalidArgument(store.GetRange("", 0, 1).status()));
  CHECK(absl::IsInvalidArgument(store.Head("a b").status()));
  CHECK(absl::IsInvalidArgument(store.Delete("/")));
  CHECK(absl::IsInvalidArgument(store.StartUpload("a/").status()));
  CHECK(absl::IsInvalidArgument(store.List({"a//"}).status()));
}

TEST_CASE("object store: several threads use one store", "[object_store]") {
  AnyStore any(AnyKind());
  std::vector<std::thread> threads;
  std::vector<int> right(6);
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 5; ++k) {
        const std::string key = any.Key(absl::StrCat("t", i, "/", k));
        const bool put = any.store->Put(key, key, PutCondition::kIfAbsent).ok();
        right[i] += put && any.store->Get(key, kAny).value_or("") == key ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == std::vector<int>(6, 5));
  CHECK(any.store->List({any.prefix})->objects.size() == 30);
}

}  // namespace
}  // namespace lockstep
