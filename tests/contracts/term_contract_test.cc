// What every TermRegistry promises, asked of each implementation on each storage.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "chief/term/job_log.h"
#include "chief/term/log_term_registry.h"
#include "chief/term/storage_term_registry.h"
#include "common/storage/local/local_storage.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

struct OnLocalStorage {
  OnLocalStorage() {
    const char* base = std::getenv("TEST_TMPDIR");
    std::string pattern = std::string(base != nullptr ? base : "/tmp") + "/terms-XXXXXX";
    path = mkdtemp(pattern.data());
    storage = LocalStorage::Create(path).value();
  }
  ~OnLocalStorage() { std::filesystem::remove_all(path); }
  std::unique_ptr<TermRegistry> Open() { return std::make_unique<StorageTermRegistry>(*storage); }

  std::string path;
  std::unique_ptr<Storage> storage;
};

struct OnMemoryStorage {
  std::unique_ptr<TermRegistry> Open() { return std::make_unique<StorageTermRegistry>(storage); }
  MemoryStorage storage;
};

// In a commit log.
template <typename Place>
struct InLog : Place {
  struct Registry : LogTermRegistry {
    explicit Registry(Storage& storage) : LogTermRegistry(log, older), log(storage), older(storage) {}
    JobLog log;
    StorageTermRegistry older;
  };
  std::unique_ptr<TermRegistry> Open() {
    if constexpr (std::is_same_v<Place, OnLocalStorage>) {
      return std::make_unique<Registry>(*this->storage);
    } else {
      return std::make_unique<Registry>(this->storage);
    }
  }
};

TermOwner Owner(int64_t pid) {
  TermOwner owner;
  owner.set_pid(pid);
  owner.set_host("alpha");
  return owner;
}

TEMPLATE_TEST_CASE("terms: they start at 1 and no two claims get the same", "[term]", OnLocalStorage, OnMemoryStorage,
                   InLog<OnLocalStorage>, InLog<OnMemoryStorage>) {
  TestType place;
  auto a = place.Open();
  auto b = place.Open();
  CHECK(a->Newest().value() == 0);

  CHECK(a->Claim(Owner(1)).value() == 1);
  CHECK(b->Claim(Owner(2)).value() == 2);
  CHECK(a->Claim(Owner(3)).value() == 3);

  CHECK(a->Newest().value() == 3);
  CHECK(b->Newest().value() == 3);
  CHECK(place.Open()->Newest().value() == 3);
}

TEMPLATE_TEST_CASE("terms: who claimed one is known to all", "[term]", OnLocalStorage, OnMemoryStorage,
                   InLog<OnLocalStorage>, InLog<OnMemoryStorage>) {
  TestType place;
  auto registry = place.Open();
  REQUIRE(registry->Claim(Owner(17)).ok());

  const auto owner = place.Open()->OwnerOf(1);

  REQUIRE(owner.ok());
  CHECK(owner->pid() == 17);
  CHECK(owner->term() == 1);
  CHECK(owner->host() == "alpha");
  CHECK(registry->OwnerOf(2).status().code() == absl::StatusCode::kNotFound);
}

TEST_CASE("terms: claims at the same time get different ones", "[term]") {
  OnLocalStorage place;
  std::vector<int64_t> got(4 * 8);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      auto registry = place.Open();
      for (int i = 0; i < 8; ++i) got[t * 8 + i] = registry->Claim(Owner(t)).value();
    });
  }
  for (std::thread& thread : threads) thread.join();

  std::sort(got.begin(), got.end());
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == static_cast<int64_t>(i) + 1);
}

TEST_CASE("terms: of claims in a log at the same time each counts or is fenced", "[term]") {
  InLog<OnLocalStorage> place;
  std::vector<std::vector<int64_t>> got(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 8; ++i) {
        const absl::StatusOr<int64_t> term = place.Open()->Claim(Owner(t));
        if (term.ok()) got[t].push_back(*term);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  std::set<int64_t> all;
  size_t count = 0;
  for (const auto& terms : got) {
    CHECK(std::is_sorted(terms.begin(), terms.end()));
    all.insert(terms.begin(), terms.end());
    count += terms.size();
  }
  CHECK(all.size() == count);
  CHECK(count >= 8);
  CHECK(place.Open()->Claim(Owner(9)).value() > *all.rbegin());
}

TEMPLATE_TEST_CASE("terms: a claim that returned survives the loss of power", "[term]", OnMemoryStorage,
                   InLog<OnMemoryStorage>) {
  TestType place;
  REQUIRE(place.Open()->Claim(Owner(1)).value() == 1);

  place.storage.Restart(MemoryStorage::Survival::kNothing, 1);

  CHECK(place.Open()->Newest().value() == 1);
  CHECK(place.Open()->Claim(Owner(2)).value() == 2);
}

}  // namespace
}  // namespace lockstep::chief
