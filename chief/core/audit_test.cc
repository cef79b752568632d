#include "chief/core/audit.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

const Incarnation kA{1, 1}, kB{1, 2}, kC{1, 3}, kD{1, 4};

using List = std::vector<Incarnation>;

TEST_CASE("audit: of three replicas the one that differs is named once all have told", "[core][rule22]") {
  Audit audit;
  audit.Restored(0, {kA, kB, kC});

  CHECK(audit.Agrees(kA, 16, "d"));
  CHECK(audit.Minority().empty());
  CHECK_FALSE(audit.Agrees(kB, 16, "x"));
  CHECK(audit.Awaited() == List{kC});
  CHECK(audit.Minority().empty());
  CHECK(audit.Agrees(kC, 32, "e"));  // of another step: says nothing of this one
  CHECK(audit.Awaited() == List{kC});
  CHECK_FALSE(audit.Agrees(kC, 16, "d"));

  CHECK(audit.Awaited().empty());
  CHECK(audit.Minority() == List{kB});
}

TEST_CASE("audit: of two replicas nobody is named", "[core][rule22]") {
  Audit audit;
  audit.Restored(0, {kA, kB});
  CHECK(audit.Agrees(kA, 16, "d"));

  CHECK_FALSE(audit.Agrees(kB, 16, "x"));

  CHECK(audit.Awaited().empty());
  CHECK(audit.Minority().empty());
}

TEST_CASE("audit: two that differ from two, and three that all differ, name nobody", "[core][rule22]") {
  Audit four;
  four.Restored(0, {kA, kB, kC, kD});
  for (const auto& [who, digest] : std::map<Incarnation, Digest>{{kA, "d"}, {kB, "d"}, {kC, "x"}, {kD, "x"}}) {
    four.Agrees(who, 16, digest);
  }
  CHECK(four.Minority().empty());

  Audit three;
  three.Restored(0, {kA, kB, kC});
  for (const auto& [who, digest] : std::map<Incarnation, Digest>{{kA, "d"}, {kB, "x"}, {kC, "y"}}) {
    three.Agrees(who, 16, digest);
  }
  CHECK(three.Minority().empty());
}

TEST_CASE("audit: a copy is no witness beside its source until all agreed once", "[core][rule22]") {
  Audit audit;
  audit.Restored(0, {kA, kB});
  audit.GoesOn(20, {kA, kB, kC}, kA, {kC}, true);
  audit.Agrees(kA, 32, "x");
  audit.Agrees(kC, 32, "x");
  SECTION("the copy and its source against one") {
    CHECK_FALSE(audit.Agrees(kB, 32, "d"));
    CHECK(audit.Minority().empty());
  }
  SECTION("a copy of the copy is one of the source") {
    audit.GoesOn(40, {kB, kC, kD}, kC, {kD}, true);
    audit.Agrees(kB, 48, "d");
    audit.Agrees(kC, 48, "x");
    CHECK_FALSE(audit.Agrees(kD, 48, "x"));
    CHECK(audit.Minority().empty());
  }
  SECTION("all agreed since") {
    CHECK(audit.Agrees(kB, 32, "x"));
    for (const Incarnation& who : {kA, kC}) CHECK(audit.Agrees(who, 48, "e"));
    CHECK_FALSE(audit.Agrees(kB, 48, "y"));
    CHECK(audit.Minority() == List{kB});
  }
}

TEST_CASE("audit: copies that agreed with each other are one voice at that step for ever", "[core][rule22]") {
  Audit audit;
  audit.Restored(0, {kA, kD});
  audit.GoesOn(20, {kA, kB, kC}, kA, {kB, kC}, true);  // of a state that was hit, perhaps
  for (const Incarnation& who : {kA, kB, kC}) CHECK(audit.Agrees(who, 32, "x"));
  for (const Incarnation& who : {kA, kB, kC}) CHECK(audit.Agrees(who, 48, "y"));
  for (const Incarnation& who : {kA, kB, kC}) CHECK(audit.Agrees(who, 32, "x"));  // by a snapshot

  // They are gone, and the one that was left out computes these steps again.
  audit.GoesOn(20, {kD}, kD, {}, true);
  CHECK_FALSE(audit.Agrees(kD, 32, "d"));

  CHECK(audit.Minority().empty());
}

TEST_CASE("audit: a copy that differs from its own source and a third is named", "[core][rule22]") {
  Audit audit;
  audit.Restored(0, {kA, kB});
  audit.GoesOn(20, {kA, kB, kC}, kA, {kC}, true);
  audit.Agrees(kA, 32, "d");
  audit.Agrees(kB, 32, "d");

  CHECK_FALSE(audit.Agrees(kC, 32, "x"));

  CHECK(audit.Minority() == List{kC});
}

TEST_CASE("audit: what was agreed before a copy was made does not make it a witness", "[core][rule22]") {
  Audit audit;
  audit.Restored(0, {kA, kB});
  audit.GoesOn(20, {kA, kB, kC}, kA, {kC}, true);
  for (const Incarnation& who : {kA, kB, kC}) CHECK(audit.Agrees(who, 16, "d"));

  audit.Agrees(kA, 32, "x");
  audit.Agrees(kC, 32, "x");
  CHECK_FALSE(audit.Agrees(kB, 32, "d"));

  CHECK(audit.Minority().empty());
}

TEST_CASE("audit: of an adopted generation nobody is named before all agreed", "[core][rule22]") {
  Audit audit;
  audit.Adopted(10, {kA, kB, kC});
  SECTION("at once") { audit.Agrees(kA, 16, "d"), audit.Agrees(kB, 16, "d"), audit.Agrees(kC, 16, "x"); }
  SECTION("after an agreement") {
    for (const Incarnation& who : {kA, kB, kC}) CHECK(audit.Agrees(who, 16, "d"));
    audit.Agrees(kA, 32, "e"), audit.Agrees(kB, 32, "e"), audit.Agrees(kC, 32, "x");
    CHECK(audit.Minority() == List{kC});
    return;
  }

  CHECK(audit.Minority().empty());
  CHECK(audit.Awaited().empty());
}

TEST_CASE("audit: survivors compare with what a dead replica told; a restore forgets it", "[core][rule22]") {
  Audit audit;
  audit.Restored(0, {kA, kB});
  CHECK(audit.Agrees(kA, 16, "x"));
  SECTION("survivors") {
    audit.GoesOn(16, {kB, kC}, kB, {kC}, true);
    CHECK_FALSE(audit.Agrees(kB, 16, "d"));
  }
  SECTION("survivors that compute the step once more, with other sums") {
    audit.GoesOn(15, {kB, kC}, kB, {kC}, false);
    CHECK(audit.Agrees(kB, 16, "d"));
  }
  SECTION("restored") {
    audit.Restored(0, {kB, kC});
    CHECK(audit.Agrees(kB, 16, "d"));
  }
}

TEST_CASE("audit: who computed a step in another generation, before it joined, is not named for it", "[core][rule22]") {
  Audit audit;
  audit.Restored(10, {kA, kB});
  REQUIRE(audit.Agrees(kA, 20, "d"));
  REQUIRE(audit.Agrees(kB, 20, "d"));
  // A worker that stepped on beside one that was hit comes with a state of its own, and gets that of A.
  audit.GoesOn(30, {kA, kB, kC}, kA, {kC}, true);

  SECTION("what it had before") {
    CHECK_FALSE(audit.Agrees(kC, 20, "x"));
    CHECK(audit.Awaited().empty());
    CHECK(audit.Minority().empty());
  }
  SECTION("what it computed since") {
    REQUIRE(audit.Agrees(kA, 40, "e"));
    REQUIRE(audit.Agrees(kB, 40, "e"));
    CHECK_FALSE(audit.Agrees(kC, 40, "x"));
    CHECK(audit.Minority() == List{kC});
  }
}

TEST_CASE("audit: a step that two generations computed, each by itself, names nobody", "[core][rule22]") {
  Audit audit;
  audit.Restored(10, {kA, kB});
  // A was hit, and C got its state: they agree with each other, and are two voices from then on.
  audit.GoesOn(20, {kA, kC}, kA, {kC}, true);
  REQUIRE(audit.Agrees(kA, 30, "x"));
  REQUIRE(audit.Agrees(kC, 30, "x"));
  // Both are gone, and B goes on from where it stood.
  audit.GoesOn(20, {kB}, kB, {}, true);

  CHECK_FALSE(audit.Agrees(kB, 30, "d"));

  CHECK(audit.Minority().empty());
}

TEST_CASE("audit: only so many steps are kept, and the one that differs among them", "[core][rule22]") {
  Audit audit;
  audit.Restored(0, {kA, kB});
  audit.Agrees(kA, 16, "d");
  audit.Agrees(kB, 16, "x");
  for (uint64_t step = 32; step < 32 * 100; step += 16) audit.Agrees(kA, step, "e");

  CHECK(audit.Awaited().empty());
  CHECK_FALSE(audit.Agrees(kB, 16, "x"));
}

}  // namespace
}  // namespace lockstep::chief
